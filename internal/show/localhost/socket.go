// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package localhost

import (
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// SocketVariable is the environment variable with the path of a Unix socket at which [Serve] serves,
// too, whatever the operator does with its metrics. "ctrlkit run" sets it for the operator that it
// starts. Who may open the socket may read all: its directory is to be private.
const SocketVariable = "CTRLKIT_SOCKET"

// sockets are what is served at each socket. A process with several managers serves each path of
// the first one that has it, while the first manager runs.
var sockets = struct {
	sync.Mutex
	byName map[string]*socket
}{byName: map[string]*socket{}}

type socket struct {
	http.ServeMux
	paths map[string]bool
}

// serveAtSocket adds a handler to the socket, if there is to be one. An operator whose socket can't
// be made works without.
func serveAtSocket(mgr manager.Manager, path string, handler http.Handler) error {
	name := os.Getenv(SocketVariable)
	if name == "" {
		return nil
	}
	sockets.Lock()
	defer sockets.Unlock()
	s := sockets.byName[name]
	if s == nil {
		listener, err := net.Listen("unix", name)
		if err != nil {
			mgr.GetLogger().Error(err, "Serving at the socket of "+SocketVariable)
			return nil
		}
		s = &socket{paths: map[string]bool{}}
		server := &manager.Server{Name: "ctrlkit", Server: &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}, Listener: listener}
		if err := mgr.Add(server); err != nil {
			return err
		}
		sockets.byName[name] = s
	}
	if !s.paths[path] {
		s.paths[path] = true
		s.Handle(path, handler)
	}
	return nil
}
