package boot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// deviceTimeout bounds the wait for a device that the kernel still finds.
const deviceTimeout = 10 * time.Second

const devicePause = 2 * time.Millisecond

// loadModules loads the files of <folder>/order one after the other; what is built in or there already is passed over.
func loadModules(folder string) error {
	order, err := os.ReadFile(folder + "/order")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		f, err := os.Open(filepath.Join(folder, filepath.Base(name)))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && err != unix.EEXIST {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	return nil
}

// findDrive waits for the virtio block device with the serial and returns its node.
func findDrive(serial string) (string, error) {
	for end := time.Now().Add(deviceTimeout); time.Now().Before(end); time.Sleep(devicePause) {
		files, _ := filepath.Glob("/sys/block/vd*/serial")
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && string(bytes.TrimSpace(text)) == serial {
				return "/dev/" + filepath.Base(filepath.Dir(file)), nil
			}
		}
		if serial != "root" && len(files) > 1 {
			break // the drives are found in order: a second one without the serial will not get it later
		}
	}
	return "", fmt.Errorf("no drive with the serial %q", serial)
}
