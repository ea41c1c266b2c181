package host

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/link"

	"connectrpc.com/connect"
)

func TestTrialFreezeAndWake(t *testing.T) {
	s := trial(t)
	ctx := t.Context()
	c := command("sh", "-c", `mkdir -p /etc/space/wake.d; cd /etc/space/wake.d; rm -f *
printf '#!/bin/sh\ncat /run/space/generation > /tmp/hook; hostname >> /tmp/hook; id -u >> /tmp/hook; echo $FROM_SANDBOX >> /tmp/hook\n' > 10-good
printf '#!/bin/sh\nexit 3\n' > 20-bad; printf '#!/bin/sh\nsleep 60\n' > 30-slow; printf 'x' > 40-not-executable; chmod 755 10-good 20-bad 30-slow`)
	c.User = "root"
	if r := run(t, s, c); r.Exit.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	ticker := command("sh", "-c", "while :; do echo tick; sleep 0.02; done")
	stream := s.Client.Attach(ctx)
	_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: ticker}})
	counted := make(chan int64, 1000)
	go func() {
		n := int64(0)
		for {
			m, err := stream.Receive()
			if err != nil {
				return
			}
			n += int64(len(m.GetOutput().GetData()))
			select {
			case counted <- n:
			default:
			}
		}
	}()
	<-counted
	at := time.Now()
	if _, err := s.Client.Freeze(ctx, connect.NewRequest(&guestv1.FreezeRequest{CgroupTimeoutMs: 5000, FilesystemTimeoutMs: 10000})); err != nil {
		t.Fatal(err)
	}
	t.Logf("freeze %v", time.Since(at))
	if _, err := s.Client.Freeze(ctx, connect.NewRequest(&guestv1.FreezeRequest{})); err != nil {
		t.Error("a second freeze", err)
	}
	time.Sleep(100 * time.Millisecond)
	for len(counted) > 0 {
		<-counted
	}
	time.Sleep(200 * time.Millisecond)
	if len(counted) > 0 {
		t.Error("output of a frozen workload")
	}
	refused := s.Client.Attach(ctx)
	_ = refused.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: command("true")}})
	if _, err := refused.Receive(); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Error("a start while frozen", err)
	}
	entropy := make([]byte, 64)
	_, _ = rand.Read(entropy)
	target := time.Now().Add(48 * time.Hour)
	at = time.Now()
	answer, err := s.Client.Wake(ctx, connect.NewRequest(&guestv1.WakeRequest{
		UnixNs: target.UnixNano(), Entropy: entropy, Hostname: "sbx123", Generation: "gen-7",
		Env: map[string]string{"FROM_SANDBOX": "yes"}, CaCertificatesPem: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("wake %v", time.Since(at))
	if got := strings.Join(answer.Msg.FailedHooks, " "); got != "20-bad 30-slow" {
		t.Error("failed hooks", got)
	}
	<-counted
	r := run(t, s, command("sh", "-c", "cat /tmp/hook; hostname; echo $FROM_SANDBOX; grep sbx123 /etc/hosts; date +%s; ps -eo args | grep -c '[s]leep 60'; cat /run/space/generation"))
	want := "gen-7\nsbx123\n0\nyes\nsbx123\nyes\n127.0.1.1 sbx123 # this sandbox\n"
	if !strings.HasPrefix(string(r.Stdout), want) || !strings.HasSuffix(string(r.Stdout), "\n0\ngen-7\n") {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	info, _ := s.Client.Info(ctx, connect.NewRequest(&guestv1.InfoRequest{}))
	if info.Msg.Generation != "gen-7" {
		t.Error(info.Msg.Generation)
	}
	clock, err := s.Client.SetClock(ctx, connect.NewRequest(&guestv1.SetClockRequest{UnixNs: time.Now().UnixNano()}))
	if err != nil || !clock.Msg.Stepped || time.Duration(clock.Msg.OffsetNs) > -47*time.Hour {
		t.Error(clock, err)
	}
	clock, err = s.Client.SetClock(ctx, connect.NewRequest(&guestv1.SetClockRequest{UnixNs: time.Now().UnixNano()}))
	t.Log(clock, err)
	_, _ = s.Client.Signal(ctx, connect.NewRequest(&guestv1.SignalRequest{ProcessId: ticker.ProcessId, Signal: 9, Scope: guestv1.SignalRequest_SCOPE_TREE}))
	if _, err := s.Client.Sync(ctx, connect.NewRequest(&guestv1.SyncRequest{})); err != nil {
		t.Error(err)
	}
	grown, err := s.Client.GrowRoot(ctx, connect.NewRequest(&guestv1.GrowRootRequest{}))
	t.Log(grown, err)
	if err != nil {
		t.Error(err)
	}
}

// A node that goes without a word: its stream stalled, its connection cut, its bytes left in the queues.
func TestTrialHelloWinsAlsoInAStalledSession(t *testing.T) {
	s := trial(t)
	prefix := link.BootPrefix
	c := command("sh", "-c", "i=0; while [ $i -lt 400 ]; do echo 0123456789abcdef$i; i=$((i+1)); head -c 20000 /dev/zero; done")
	want := int64(0)
	for round := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		stream := s.Client.Attach(ctx)
		_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: c}})
		for range 3 + round {
			m, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if o := m.GetOutput(); o != nil {
				if o.Offset != want {
					t.Fatalf("offset %d, want %d", o.Offset, want)
				}
				want += int64(len(o.Data))
				if round%2 == 0 {
					_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Ack{Ack: &guestv1.Ack{Offset: want}}})
				}
			}
		}
		secret := link.Prefix{}
		_, _ = rand.Read(secret[:])
		if _, err := s.Client.SetLinkSecret(ctx, connect.NewRequest(&guestv1.SetLinkSecretRequest{Prefix: secret[:]})); err != nil {
			t.Fatal(err)
		}
		prefix = secret
		// Nobody reads any more: the agent's writer fills the queues. Then the connection is cut, in the middle of a frame.
		time.Sleep(100 * time.Millisecond)
		_, _ = s.Conn.Write([]byte{0, 64, 0, 0, 0, 0, 0, 0, 1, 'x'})
		s.Conn.Close()
		conn, err := net.Dial("unix", os.Getenv("SPACE_TRIAL_SOCKET"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		cancel()
		wrong, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if round == 2 {
			if _, err := Open(wrong, conn, link.BootPrefix); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the prefix of the boot still works: %v", err)
			}
		}
		stop()
		within, stop := context.WithTimeout(t.Context(), 20*time.Second)
		at := time.Now()
		next, err := Open(within, conn, prefix)
		stop()
		if err != nil {
			t.Fatal(round, err)
		}
		t.Logf("round %d: %v", round, time.Since(at))
		s = next
		for _, p := range s.Hello.Processes {
			if p.ProcessId == c.ProcessId {
				want = max(want-want, p.AcknowledgedOffset)
			}
		}
	}
	back := connect.NewRequest(&guestv1.SetLinkSecretRequest{Prefix: link.BootPrefix[:]})
	if _, err := s.Client.SetLinkSecret(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	stream := s.Client.Attach(t.Context())
	_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: c}})
	r := &Result{Bytes: want}
	if err := s.Follow(stream, r, true); err != nil || r.Exit.ExitCode != 0 {
		t.Error(r, err)
	}
}

func TestTrialZShutdownPowersOff(t *testing.T) {
	if os.Getenv("SPACE_TRIAL_SHUTDOWN") == "" {
		t.Skip("SPACE_TRIAL_SHUTDOWN is not set")
	}
	s := trial(t)
	if _, err := s.Client.Shutdown(t.Context(), connect.NewRequest(&guestv1.ShutdownRequest{})); err != nil {
		t.Fatal(err)
	}
	_ = s.Conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := s.Conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("still there")
	}
}
