package modules

import (
	"errors"
	"os"
	"slices"
	"testing"
)

func TestResolveFollowsAliasesAndDependencies(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"modules.dep":   "kernel/net/a.ko:\nkernel/net/b-x.ko: kernel/net/c.ko kernel/net/a.ko\nkernel/net/c.ko: kernel/net/a.ko\nkernel/fs/fuse.ko:\n",
		"modules.alias": "# aliases\nalias char-major-10-229 fuse\nalias net-pf-*-proto-6 b_x\nalias dead gone\n",
	} {
		if err := os.WriteFile(folder+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"kernel/net/a.ko", "kernel/net/c.ko", "kernel/net/b-x.ko"}
	for name, want := range map[string][]string{
		"fuse": {"kernel/fs/fuse.ko"}, "char-major-10-229": {"kernel/fs/fuse.ko"}, "b-x": all, "b_x": all, "net-pf-16-proto-6": all,
	} {
		if got, err := resolve(folder, name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	for _, name := range []string{"nothing", "dead", "", "../a", "net-pf-1-proto-7"} {
		if got, err := resolve(folder, name); !errors.Is(err, ErrUnknownModule) {
			t.Errorf("%q: %v %v", name, got, err)
		}
	}
}
