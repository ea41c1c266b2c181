// Package modules loads kernel modules the way modprobe does, from a folder with modules.dep and modules.alias.
//
// The kernel itself asks for modules (a tunnel, a filter, a filesystem that a program of the workload wants) by running
// /sbin/modprobe in its own first mount namespace, which is the agent's. There the agent's binary answers, whatever the
// workload's root drive has.
package modules

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUnknownModule says that neither a file nor an alias of the name exists.
var ErrUnknownModule = errors.New("no such module")

// maxMatches bounds what an alias can lead to; real ones name a few modules.
const maxMatches = 16

// Load loads the module, or every module the alias names, after what each depends on.
func Load(folder, name string) error {
	files, err := resolve(folder, name)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := insert(path.Join(folder, file)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// resolve lists the files to load, in order.
func resolve(folder, name string) ([]string, error) {
	dependencies := map[string][]string{}
	fileOf := map[string]string{}
	err := lines(path.Join(folder, "modules.dep"), func(line string) {
		file, needs, ok := strings.Cut(line, ":")
		if ok {
			dependencies[file] = strings.Fields(needs)
			fileOf[moduleName(file)] = file
		}
	})
	if err != nil {
		return nil, err
	}
	wanted := []string{canonical(name)}
	if fileOf[wanted[0]] == "" {
		wanted = nil
		err := lines(path.Join(folder, "modules.alias"), func(line string) {
			f := strings.Fields(line)
			if len(f) == 3 && f[0] == "alias" && len(wanted) < maxMatches && matches(f[1], name) {
				wanted = append(wanted, canonical(f[2]))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	var files []string
	for _, module := range wanted {
		file := fileOf[module]
		if file == "" {
			continue
		}
		needs := dependencies[file]
		for i := len(needs) - 1; i >= 0; i-- {
			files = append(files, needs[i])
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, ErrUnknownModule
	}
	return files, nil
}

func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return canonical(base)
}

// canonical: the kernel takes - and _ in names as equal.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && (ok || canonical(pattern) == canonical(name))
}

func lines(file string, take func(string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for s.Scan() {
		take(s.Text())
	}
	return s.Err()
}

func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return err
	}
	return nil
}
