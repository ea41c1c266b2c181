package boot

import "testing"

func TestKernelParameters(t *testing.T) {
	for line, want := range map[string]parameters{
		"":                                       {},
		"quiet space.init=systemd":               {systemd: true},
		"space.init=systemd space.init=reaper\n": {},
		"xspace.init=systemd space.debug=1 panic": {debug: true},
	} {
		if got := parseParameters(line); got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
