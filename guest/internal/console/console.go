// Package console is the agent's sparing log on the kernel's console.
package console

import (
	"fmt"
	"os"
)

// Debug lets Debugf print (kernel parameter space.debug=1).
var Debug bool

// Printf prints one line.
func Printf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "space-agent: "+format+"\n", args...)
}

// Debugf prints one line when the agent is being debugged.
func Debugf(format string, args ...any) {
	if Debug {
		Printf(format, args...)
	}
}
