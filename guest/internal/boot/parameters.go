package boot

import (
	"os"
	"strings"
)

type parameters struct {
	systemd bool
	debug   bool
}

// readParameters reads the kernel's command line: space.init=reaper|systemd, space.debug=1.
func readParameters() parameters {
	line, _ := os.ReadFile("/proc/cmdline")
	return parseParameters(string(line))
}

func parseParameters(line string) parameters {
	var p parameters
	for word := range strings.FieldsSeq(line) {
		switch word {
		case "space.init=systemd":
			p.systemd = true
		case "space.init=reaper":
			p.systemd = false
		case "space.debug=1":
			p.debug = true
		}
	}
	return p
}
