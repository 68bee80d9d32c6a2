// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanIsolate returns why programs can't run in a network of their own on this machine, or nil.
func CanIsolate() error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = IsolatedProcessGroup()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("this machine gives processes no network of their own: %w", err)
	}
	return nil
}

// IsolatedProcessGroup starts a process in a group, a network and file systems of its own. It is
// root in there, which is what it takes to bring up the loopback interface and to hide directories,
// and has the rights of the user outside.
func IsolatedProcessGroup() *syscall.SysProcAttr {
	attributes := OwnProcessGroup()
	attributes.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attributes
}

// loopbackUp brings up the loopback interface of a new network.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("isolating the operator: bringing up the loopback interface: %w", err)
	}
	return nil
}

// hide puts an empty file system over each directory to hide, deepest first, and what stays back
// into its place. What can't be hidden is visible, which it says; what can't be put back is an
// error. Then it gives up the right to undo that, for this goroutine and the processes that it
// starts.
func (i Isolation) hide(visible func(string)) error {
	kept := map[string]int{}
	for _, path := range i.Keep {
		for _, name := range []string{path, realPath(path)} {
			if fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
				defer unix.Close(fd) //nolint:errcheck // nothing was written
				kept[name] = fd
			}
		}
	}
	private := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	deepest := slices.SortedFunc(slices.Values(i.Hide), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, dir := range deepest {
		err := private
		if err == nil {
			err = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
		}
		if err != nil {
			visible(dir + ": " + err.Error())
		}
	}
	for _, dir := range i.Hide { // one within another one
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("isolating the operator: %w", err)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(kept), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) {
		if err := putBack(name, kept[name]); err != nil {
			return fmt.Errorf("isolating the operator: putting %s back: %w", name, err)
		}
	}
	if err := os.Chdir(i.Directory); err != nil { // the former one leads to what is hidden
		return fmt.Errorf("isolating the operator: %w", err)
	}
	return giveUpCapabilities()
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// putBack mounts what is open to its name, unless it was not hidden.
func putBack(name string, fd int) error {
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	opened := "/proc/self/fd/" + strconv.Itoa(fd)
	info, err := os.Stat(opened)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(name, 0o755)
	} else {
		err = os.WriteFile(name, nil, 0o600)
	}
	return errors.Join(err, unix.Mount(opened, name, "", unix.MS_BIND|unix.MS_REC, ""))
}

// giveUpCapabilities keeps the processes that this goroutine starts from unmounting anything.
func giveUpCapabilities() error {
	runtime.LockOSThread() // capabilities are those of a thread, which stays with the goroutine
	for capability := uintptr(0); ; capability++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); {
		case errors.Is(err, unix.EINVAL) && capability > unix.CAP_SYS_ADMIN: // the kernel knows no more
			return nil
		case err != nil:
			return fmt.Errorf("isolating the operator: giving up capabilities: %w", err)
		}
	}
}
