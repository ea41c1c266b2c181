package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"space/guest/internal/link"
	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

const (
	portName  = "space.guest.0"
	vsockPort = 1024
)

// OpenChannel waits for the guest channel: the virtio-serial port, or a vsock connection where there is vsock and no
// port. The port can appear late.
func OpenChannel(poller *poll.Poller) (link.Port, error) {
	vsock := -1
	for {
		if port, err := openPort(poller); err == nil {
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

func openPort(poller *poll.Poller) (*port, error) {
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
		p := &port{File: os.NewFile(uintptr(fd), node), news: make(chan struct{}, 1)}
		p.watch, err = poller.Watch(fd, unix.EPOLLIN|unix.EPOLLET, p.onNews)
		if err != nil {
			_ = p.File.Close()
			return nil, err
		}
		return p, nil
	}
	return nil, os.ErrNotExist
}

// port is the virtio-serial port. Without a host every read ends at once; the kernel tells the change by an edge.
type port struct {
	*os.File
	news  chan struct{}
	watch *poll.Watch
}

func (p *port) onNews() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *port) WaitForHost(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.news:
	case <-timer.C:
	}
}

func (p *port) Close() error {
	p.watch.Close()
	return p.File.Close()
}

// connection is a vsock connection: at its end the agent waits for the next one.
type connection struct{ *os.File }

func (c connection) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	if errors.Is(err, io.EOF) {
		err = net.ErrClosed
	}
	return n, err
}

func (connection) WaitForHost(time.Duration) {}

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

func acceptVsock(fd int) (link.Port, error) {
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return connection{os.NewFile(uintptr(conn), "vsock")}, nil
}
