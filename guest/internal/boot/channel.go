package boot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"space/guest/internal/link"

	"golang.org/x/sys/unix"
)

const (
	portName  = "space.guest.0"
	vsockPort = 1024
)

// OpenChannel waits for the guest channel: the virtio-serial port, or a vsock connection where there is vsock and no
// port. The port can appear late.
func OpenChannel() (link.Port, error) {
	vsock := -1
	for {
		if port, err := openPort(); err == nil {
			if vsock >= 0 {
				unix.Close(vsock)
			}
			return port, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if vsock < 0 {
			vsock = listenVsock()
		}
		if vsock >= 0 {
			if port, err := acceptVsock(vsock); err == nil {
				unix.Close(vsock)
				return port, nil
			}
		}
		time.Sleep(devicePause)
	}
}

func openPort() (*os.File, error) {
	names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range names {
		if text, err := os.ReadFile(file); err != nil || string(bytes.TrimSpace(text)) != portName {
			continue
		}
		node := "/dev/" + filepath.Base(filepath.Dir(file))
		fd, err := unix.Open(node, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", node, err)
		}
		return os.NewFile(uintptr(fd), node), nil
	}
	return nil, os.ErrNotExist
}

// listenVsock returns a listening socket, or -1 where the machine has no vsock device.
func listenVsock() int {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	if unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: vsockPort}) != nil || unix.Listen(fd, 4) != nil {
		unix.Close(fd)
		return -1
	}
	return fd
}

func acceptVsock(fd int) (*os.File, error) {
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(conn), "vsock"), nil
}
