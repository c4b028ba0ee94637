// slow-disk DELAY SOURCE MOUNTPOINT mounts the folder SOURCE at MOUNTPOINT, by FUSE, as a disk that can become slow: from SIGUSR1 to SIGUSR2
// each write and each fsync takes DELAY longer. It needs root and Linux. It prints "mounted" when the folder can be used. At SIGTERM it
// ends, and the mount with it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

type disk struct {
	delay  time.Duration
	isSlow atomic.Bool
}

func (d *disk) wait() {
	if d.isSlow.Load() {
		time.Sleep(d.delay)
	}
}

// node is a file or folder whose opened files wait for the disk.
type node struct {
	*fs.LoopbackNode
	disk *disk
}

func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{child.(*fs.LoopbackNode), n.disk}
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	opened, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrap(opened), fuseFlags, errno
}

func (n *node) Create(ctx context.Context, name string, flags uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, opened, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.wrap(opened), fuseFlags, errno
}

func (n *node) wrap(opened fs.FileHandle) fs.FileHandle {
	if loopback, ok := opened.(*fs.LoopbackFile); ok {
		return &file{loopback, n.disk}
	}
	return opened
}

type file struct {
	*fs.LoopbackFile
	disk *disk
}

func (f *file) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	f.disk.wait()
	return f.LoopbackFile.Write(ctx, data, offset)
}

func (f *file) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	f.disk.wait()
	return f.LoopbackFile.Fsync(ctx, flags)
}

// PassthroughFd keeps the kernel from writing to the file below without this process.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

func run(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("usage: slow-disk DELAY SOURCE MOUNTPOINT")
	}
	delay, err := time.ParseDuration(arguments[0])
	if err != nil {
		return err
	}
	slow := &disk{delay: delay}
	below, err := fs.NewLoopbackRoot(arguments[1])
	if err != nil {
		return err
	}
	options := &fs.Options{MountOptions: fuse.MountOptions{FsName: "slow-disk", DirectMountStrict: true}}
	_, err = fs.Mount(arguments[2], &node{below.(*fs.LoopbackNode), slow}, options)
	if err != nil {
		return fmt.Errorf("mount %s: %w", arguments[2], err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("mounted")
	for received := range signals {
		switch received {
		case syscall.SIGUSR1:
			slow.isSlow.Store(true)
		case syscall.SIGUSR2:
			slow.isSlow.Store(false)
		default:
			// Also when a program that ends at the same time still has files open.
			return syscall.Unmount(arguments[2], syscall.MNT_DETACH)
		}
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "slow-disk: %v\n", err)
		os.Exit(1)
	}
}
