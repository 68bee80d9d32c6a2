// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// An audit hears of each request of a ServiceAccount from the API server, before the server answers
// the request.
type audit struct {
	user   string
	dir    string // with the files for the API server
	server *http.Server

	mu       sync.Mutex // guards what follows
	needs    []permission.Need
	refusals []refusal
	settling *time.Timer
	refused  chan struct{} // closed some time after the first refusal
	settle   time.Duration // how long that is
}

// settleFor is how long a run continues after the first refusal: an operator that starts asks for
// several kinds at the same time.
const settleFor = time.Second

// refusal is a request that the API server has answered with 403 for want of a permission.
type refusal struct {
	need permission.Need // of the missing rule; without a verb if the answer does not say it
	text string          // of the answer
}

// newAudit starts to listen. A secret in the path keeps out other users of the machine.
func newAudit(user string) (*audit, error) {
	dir, err := os.MkdirTemp("", "ctrlkit-audit-")
	if err != nil {
		return nil, fmt.Errorf("preparing the audit: %w", err)
	}
	a := &audit{user: user, dir: dir, refused: make(chan struct{}), settle: settleFor}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the audit: %w", err), os.RemoveAll(dir))
	}
	path := "/" + rand.Text()
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, a.receive)
	a.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go a.server.Serve(listener) //nolint:errcheck // it returns when the server is closed
	files := map[string]string{
		policyFile: fmt.Sprintf(auditPolicy, user), webhookFile: fmt.Sprintf(auditWebhook, "http://"+listener.Addr().String()+path),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing the audit: %w", err), a.close())
		}
	}
	return a, nil
}

const policyFile, webhookFile = "policy.yaml", "webhook.yaml"

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [%q]}
- level: None
`

const auditWebhook = `apiVersion: v1
kind: Config
clusters: [{name: run, cluster: {server: %q}}]
users: [{name: run}]
contexts: [{name: run, context: {cluster: run, user: run}}]
current-context: run
`

// flags are those of the API server: it waits until an event was received, and checks owner
// references, as some clusters do.
func (a *audit) flags() []string {
	return []string{
		"--audit-policy-file=" + filepath.Join(a.dir, policyFile),
		"--audit-webhook-config-file=" + filepath.Join(a.dir, webhookFile),
		"--audit-webhook-mode=blocking",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	}
}

// close ends the audit, after the API server.
func (a *audit) close() error {
	a.mu.Lock()
	if a.settling != nil {
		a.settling.Stop()
	}
	a.mu.Unlock()
	return errors.Join(a.server.Close(), os.RemoveAll(a.dir))
}

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Status     struct {
		Code    int
		Message string
	} `json:"responseStatus"`
}

func (a *audit) receive(w http.ResponseWriter, r *http.Request) {
	var events struct{ Items []auditEvent }
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range events.Items {
		if e.User.Username == a.user {
			a.add(e)
		}
	}
}

// add adds an event. The lock is held.
func (a *audit) add(e auditEvent) {
	needs := e.needs()
	if e.Status.Code == http.StatusForbidden {
		if missing, ok := e.missing(needs[0]); ok {
			a.refusals = append(a.refusals, refusal{missing, e.Status.Message})
			if a.settling == nil {
				a.settling = time.AfterFunc(a.settle, func() { close(a.refused) })
			}
		}
		return // what is refused is no use of a rule
	}
	a.needs = permission.Merge(a.needs, needs)
}

// needs returns what a request needs, first of all its verb. A patch or an update that has created
// its object needs the permission to create it, too.
func (e auditEvent) needs() []permission.Need {
	n := e.need()
	if e.Status.Code == http.StatusCreated && (n.Verb == "patch" || n.Verb == "update") {
		create := n
		create.Verb = "create"
		return []permission.Need{n, create}
	}
	return []permission.Need{n}
}

func (e auditEvent) need() permission.Need {
	if e.ObjectRef == nil {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return permission.Need{Path: path, Verb: e.Verb, Targets: []permission.Target{{}}}
	}
	o := e.ObjectRef
	resource := o.Resource
	if o.Subresource != "" {
		resource += "/" + o.Subresource
	}
	return permission.Need{Group: o.APIGroup, Resource: resource, Verb: e.Verb, Targets: []permission.Target{{Namespace: o.Namespace, Name: o.Name}}}
}

// cannot is what the API server answers if no rule allows a request, or something that the request
// implies: a patch of an object that does not exist creates it.
var cannot = regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"`)

// The answers of the API server to requests that imply other permissions.
const (
	cannotBlock = "cannot set blockOwnerDeletion"
	cannotGrant = "attempting to grant RBAC permissions not currently held"
)

// missing returns what a refused request has lacked; false if it was refused for another reason,
// such as a quota or a namespace that is being deleted.
func (e auditEvent) missing(n permission.Need) (permission.Need, bool) {
	message := e.Status.Message
	switch match := cannot.FindStringSubmatch(message); {
	case match != nil:
		n.Verb, n.Resource, n.Group, n.Path = match[1], match[2], match[3], ""
		return n, true
	case strings.Contains(message, cannotBlock), strings.Contains(message, cannotGrant):
		return permission.Need{Group: n.Group, Resource: n.Resource, Targets: n.Targets}, true
	case strings.Contains(message, "cannot ") && n.Path != "":
		return n, true
	}
	return permission.Need{}, false
}

// seen returns what was allowed and what was refused until now.
func (a *audit) seen() ([]permission.Need, []refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.needs, append([]refusal(nil), a.refusals...)
}
