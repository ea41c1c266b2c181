// Package clock sets the guest's wall clock to the host's.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// stepAbove is the offset from which the clock is stepped instead of slewed.
const stepAbove = 500 * time.Millisecond

const adjOffsetSingleshot = 0x8001

// Set corrects the wall clock: slewed (500 ppm) below half a second, stepped from there on. It returns how far the
// host's clock was ahead.
func Set(unixNs int64) (offset time.Duration, stepped bool, err error) {
	offset = time.Duration(unixNs - time.Now().UnixNano())
	if offset.Abs() >= stepAbove {
		return offset, true, Step(unixNs)
	}
	_, err = unix.Adjtimex(&unix.Timex{Modes: adjOffsetSingleshot, Offset: offset.Microseconds()})
	return offset, false, err
}

// Step sets the wall clock at once and drops a slew in progress.
func Step(unixNs int64) error {
	ts := unix.NsecToTimespec(unixNs)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return err
	}
	_, err := unix.Adjtimex(&unix.Timex{Modes: adjOffsetSingleshot})
	return err
}
