// Package random renews the kernel's random pool after a restore.
package random

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	rndAddEntropy  = 0x40085203
	rndReseedCrng  = 0x5207
	maxEntropyByte = 512
)

// Reseed adds the host's bytes to the pool and makes the generator take them at once, so that nothing drawn from now on
// repeats what another restore of the same memory draws.
func Reseed(entropy []byte) error {
	if len(entropy) == 0 || len(entropy) > maxEntropyByte {
		return unix.EINVAL
	}
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info := make([]byte, 8, 8+len(entropy))
	binary.NativeEndian.PutUint32(info, uint32(len(entropy)*8))
	binary.NativeEndian.PutUint32(info[4:], uint32(len(entropy)))
	info = append(info, entropy...)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), rndAddEntropy, uintptr(unsafe.Pointer(&info[0]))); e != 0 {
		return e
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), rndReseedCrng, 0); e != 0 {
		return e
	}
	return nil
}
