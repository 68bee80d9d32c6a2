// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the API server of a run as the parts of a simulation use it: every request
// goes into the trace, and objects are named by the text that plans use.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// Marks is how the annotations and labels begin with which the simulator marks objects. They are no
// part of what worlds are compared by.
const Marks = "sim.ctrlkit.dev/"

// OrphanStays is the entry of the trace for what an earlier owner has left, and no user removes: it
// is in the way of the operator, or used without an owner, and no person can read that.
const OrphanStays = "none: the orphan stays, because no condition of its owner says that it is in the way"

// Foreign is the annotation of objects that have another owner than the operator.
const Foreign = Marks + "foreign"

// History is the annotation of objects that are kept only for a rollback. What there is of them
// depends on how a workload became what it is.
const History = Marks + "history"

// A Cluster is the API server of one run, with what the changes so far say about its objects. Only
// the driver uses it.
type Cluster struct {
	Server *apiserver.Server

	trace         *trace.Trace
	active        func()
	written       map[string]map[string]any // objects as users created them, with later changes of labels and annotations
	versions      map[string][]string       // resource versions of changes, by kind
	prerequisites []string
	begins        bool            // there is a time before the operator starts, whose end NotePrerequisites is
	children      map[string]bool // objects that the operator has created
	changes       int
}

// New returns the cluster of a server. It calls active at each write.
func New(server *apiserver.Server, t *trace.Trace, active func()) *Cluster {
	return &Cluster{
		Server: server, trace: t, active: active, written: map[string]map[string]any{}, versions: map[string][]string{}, children: map[string]bool{},
	}
}

// Changed records a change that the server has committed.
func (c *Cluster) Changed(change apiserver.Change) {
	c.changes++
	kind := change.Resource.GroupResource().String()
	c.versions[kind] = append(c.versions[kind], strconv.FormatUint(change.ResourceVersion, 10))
	if change.Actor == "user" {
		c.noteWritten(change)
	}
	if change.Type == "ADDED" && IsOperator(change.Actor) {
		c.children[ObjectName(change.Resource, change.Namespace, change.Name)] = true
	}
}

// Changes returns how many changes the server has committed.
func (c *Cluster) Changes() int { return c.changes }

// noteWritten records what a user has created, and the labels and annotations that users have changed
// later: a user who creates the object again would write them, too.
func (c *Cluster) noteWritten(change apiserver.Change) {
	of := ObjectName(change.Resource, change.Namespace, change.Name)
	if change.Type == "ADDED" {
		c.written[of] = change.New
		return
	}
	if written, ok := c.written[of]; ok && change.Old != nil && change.New != nil {
		c.written[of] = rewritten(written, change)
	}
}

// rewritten returns an object as its users have written it, after one of them has changed it: they
// would write its fields, labels and annotations again, and not what others have added to these.
func rewritten(written map[string]any, change apiserver.Change) map[string]any {
	written = maps.Clone(written)
	for field, value := range change.New {
		if field != "metadata" && field != "status" {
			written[field] = value
		}
	}
	own, _ := written["metadata"].(map[string]any)
	metadata := maps.Clone(own)
	was, _ := change.Old["metadata"].(map[string]any)
	is, _ := change.New["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		if entries := changedEntries(metadata[field], was[field], is[field]); len(entries) > 0 {
			metadata[field] = entries
		} else {
			delete(metadata, field)
		}
	}
	written["metadata"] = metadata
	return written
}

// changedEntries returns the labels or annotations of a user with a change of them.
func changedEntries(own, was, is any) map[string]any {
	before, _ := was.(map[string]any)
	after, _ := is.(map[string]any)
	entries, _ := own.(map[string]any)
	entries = maps.Clone(entries)
	for key := range before {
		if _, stays := after[key]; !stays {
			delete(entries, key)
		}
	}
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			if entries == nil {
				entries = map[string]any{}
			}
			entries[key] = value
		}
	}
	return entries
}

// VersionBefore returns the resource version of a kind some changes ago.
func (c *Cluster) VersionBefore(kind string, changes int) string {
	versions := c.versions[kind]
	if n := len(versions) - changes - 1; n >= 0 {
		return versions[n]
	}
	return "1"
}

// Written returns the names of the objects that users have created, ordered.
func (c *Cluster) Written() []string { return slices.Sorted(maps.Keys(c.written)) }

// WrittenMetadata returns the metadata of an object as a user has written it, and whether one has.
func (c *Cluster) WrittenMetadata(of string) (map[string]any, bool) {
	written, ok := c.written[of]
	metadata, _ := written["metadata"].(map[string]any)
	return metadata, ok
}

// Added returns the keys of labels or annotations of an object that no user has written, ordered.
func (c *Cluster) Added(of, field string, has map[string]string) []string {
	metadata, _ := c.WrittenMetadata(of)
	own, _ := metadata[field].(map[string]any)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(has)) {
		if _, ok := own[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// NotePrerequisites records that the objects that are there now were there before the operator
// started.
func (c *Cluster) NotePrerequisites() { c.prerequisites, c.begins = c.Written(), true }

// IsPrerequisite reports whether an object was there before the operator started.
func (c *Cluster) IsPrerequisite(of string) bool { return slices.Contains(c.prerequisites, of) }

// IsChild reports whether the operator has created an object.
func (c *Cluster) IsChild(of string) bool { return c.children[of] }

// IsCustom reports whether a CustomResourceDefinition defines a kind.
func (c *Cluster) IsCustom(r schema.GroupVersionResource) bool { return c.Server.Defines(r) }

// Accepts reports whether the server would create an object. It leaves no trace.
func (c *Cluster) Accepts(collection string, content map[string]any) bool {
	body, err := json.Marshal(content)
	if err != nil {
		return false
	}
	request, err := apiserver.NewRequest(http.MethodPost, collection+"?dryRun=All", "application/json", body)
	if err != nil {
		return false
	}
	request.Actor = "other"
	return c.Server.Serve(request).Code < 300
}

// Withholdable returns the Secrets and ConfigMaps without which objects may have to wait: those that
// were there before the operator started, or if it starts first, those of users that are there now.
func (c *Cluster) Withholdable() []string {
	list := c.prerequisites
	if !c.begins {
		list = c.Written()
	}
	return slices.DeleteFunc(slices.Clone(list), func(of string) bool {
		if !strings.HasPrefix(of, "secrets ") && !strings.HasPrefix(of, "configmaps ") {
			return true
		}
		_, err := c.LookUp(of)
		return err != nil && !c.begins
	})
}

// An Object is one that is in the cluster now. Its content is a copy.
type Object struct {
	Collection string // the path of its kind, in its namespace
	Path       string
	*unstructured.Unstructured
}

// errNoObject is what LookUp returns for objects that are not there.
var errNoObject = errors.New("no such object")

// LookUp finds an object by the text that plans use.
func (c *Cluster) LookUp(of string) (Object, error) {
	kind, key, _ := strings.Cut(of, " ")
	namespace, name, _ := strings.Cut(key, "/")
	for _, o := range c.Server.Objects() {
		if o.Resource.GroupResource().String() == kind && o.Namespace == namespace && o.Name == name {
			collection := CollectionPath(o.Resource, namespace)
			return Object{collection, collection + "/" + name, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.Content)}}, nil
		}
	}
	return Object{}, fmt.Errorf("%s: %w", of, errNoObject)
}

// Execute lets the server answer a request, and records it as what it is: "write 3", "read 2".
func (c *Cluster) Execute(r *apiserver.Request, what string) *apiserver.Response {
	return c.execute(r, Describe(r), what)
}

// ExecuteInPast is Execute for a list of the past.
func (c *Cluster) ExecuteInPast(r *apiserver.Request, changes int) *apiserver.Response {
	old := *r
	old.Query = maps.Clone(r.Query)
	old.Query.Set("resourceVersion", c.VersionBefore(r.Resource.GroupResource().String(), changes))
	old.Query.Set("resourceVersionMatch", "Exact")
	return c.execute(&old, Describe(&old)+" of the past", "read")
}

func (c *Cluster) execute(r *apiserver.Request, text, what string) *apiserver.Response {
	response := c.Server.Serve(r)
	c.trace.Add(r.Actor, what, DescribeAnswer(text, response))
	return response
}

// Ask sends a request of an actor that is not the operator, and returns the body of a good answer.
func (c *Cluster) Ask(actor, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := apiserver.NewRequest(method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	request.Actor, request.UserAgent = actor, actor
	return c.Answer(request)
}

// Answer lets the server answer a request, which the trace has if it is a write. The answer is
// JSON, or an error for codes from 400 on.
func (c *Cluster) Answer(request *apiserver.Request) ([]byte, error) {
	response := c.Server.Serve(request)
	if request.Method != http.MethodGet {
		c.trace.Add(request.Actor, "write", DescribeAnswer(Describe(request), response))
		c.active()
	}
	if response.Code >= 400 {
		status := metav1.Status{}
		if err := json.Unmarshal(response.Body, &status); err != nil {
			return nil, fmt.Errorf("%s %s: %d: %s", request.Method, request.Path, response.Code, response.Body)
		}
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return response.Body, nil
}

// reasonOf returns the code of an answer, and what a Status says that is no success.
func reasonOf(r *apiserver.Response) string {
	code := strconv.Itoa(r.Code)
	if r.Code < 400 {
		return code
	}
	status := struct{ Reason, Message string }{}
	if err := json.Unmarshal(r.Body, &status); err != nil {
		return code
	}
	return code + " " + strings.TrimSpace(status.Reason+": "+status.Message)
}
