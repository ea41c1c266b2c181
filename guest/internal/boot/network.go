package boot

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The guest's own addresses, equal in every sandbox: each has its own network namespace on the host.
var (
	address = [4]byte{169, 254, 0, 21}
	netmask = [4]byte{255, 255, 255, 252}
	gateway = [4]byte{169, 254, 0, 22}
)

// Nameserver is where the workload asks for names.
const nameserver = "169.254.0.22"

type ifreqAddress struct {
	name [unix.IFNAMSIZ]byte
	unix.RawSockaddrInet4
	_ [8]byte
}

type rtentry struct {
	_                  uint64
	dst, gateway, mask unix.RawSockaddrInet4
	flags              uint16
	_                  [6]byte
	_                  [2]uint64
	metric             int16
	_                  [6]byte
	device             uintptr
	mtu, window        uint64
	_                  [8]byte
}

// bringUpNetwork gives lo and eth0 their addresses and the default route. Nobody may answer on it yet.
func bringUpNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := up(fd, "lo"); err != nil {
		return err
	}
	if err := setAddress(fd, "eth0", unix.SIOCSIFADDR, address); err != nil {
		return err
	}
	if err := setAddress(fd, "eth0", unix.SIOCSIFNETMASK, netmask); err != nil {
		return err
	}
	if err := up(fd, "eth0"); err != nil {
		return err
	}
	route := &rtentry{dst: inet([4]byte{}), gateway: inet(gateway), mask: inet([4]byte{}), flags: unix.RTF_UP | unix.RTF_GATEWAY}
	if err := ioctl(fd, unix.SIOCADDRT, unsafe.Pointer(route)); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	return nil
}

func up(fd int, name string) error {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func setAddress(fd int, name string, request uint, a [4]byte) error {
	r := &ifreqAddress{RawSockaddrInet4: inet(a)}
	copy(r.name[:], name)
	if err := ioctl(fd, request, unsafe.Pointer(r)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func inet(a [4]byte) unix.RawSockaddrInet4 {
	return unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a}
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument)); e != 0 {
		return e
	}
	return nil
}
