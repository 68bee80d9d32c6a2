// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

func (s *Server) get(k *kind, r *Request) *Response {
	v := s.store.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	if r.Subresource == "scale" {
		return getScale(k, v)
	}
	return respond(http.StatusOK, v.read(k))
}

// selection is the namespace and the selectors of a list or a watch.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(k *kind, r *Request) (selection, *failure) {
	sel := selection{namespace: r.Namespace}
	var err error
	if sel.labels, err = labels.Parse(r.Query.Get("labelSelector")); err != nil {
		return sel, fail(apierrors.NewBadRequest("unable to parse requirement: " + strings.TrimPrefix(err.Error(), "unable to parse requirement: ")))
	}
	if sel.fields, err = fields.ParseSelector(r.Query.Get("fieldSelector")); err != nil {
		return sel, fail(apierrors.NewBadRequest(err.Error()))
	}
	if r.Name != "" { // a watch of one object, by a deprecated path
		sel.fields = fields.AndSelectors(sel.fields, fields.OneTermEqualSelector("metadata.name", r.Name))
	}
	for _, requirement := range sel.fields.Requirements() {
		if !k.selectable(requirement.Field) {
			return sel, fail(apierrors.NewBadRequest(k.unselectable(requirement.Field)))
		}
	}
	return sel, nil
}

// selectable reports whether field selectors may use a field.
func (k *kind) selectable(field string) bool {
	switch {
	case field == "metadata.name":
		return true
	case field == "metadata.namespace": // of others, if the kind says nothing of its fields
		return k.namespaced || k.definition == nil && len(builtin.Selectable(k.gvk)) == 0
	case k.definition != nil:
		return slices.Contains(k.definition.Selectable, field)
	}
	return slices.Contains(builtin.Selectable(k.gvk), field)
}

// unselectable is the message of the real server for a field that field selectors may not use.
func (k *kind) unselectable(field string) string {
	if k.definition == nil && k.gvk.Group == "batch" && k.gvk.Kind == "Job" {
		return fmt.Sprintf("field label %q not supported for Job", field)
	}
	if k.definition != nil || len(builtin.Selectable(k.gvk)) > 0 {
		return "field label not supported: " + field
	}
	return fmt.Sprintf("%q is not a known field selector: only %q, %q", field, "metadata.name", "metadata.namespace")
}

func (sel selection) matches(k *kind, v *version) bool {
	if v == nil || sel.namespace != "" && v.namespace != sel.namespace {
		return false
	}
	if !sel.labels.Empty() && !sel.labels.Matches(labels.Set(v.unstructured().GetLabels())) {
		return false
	}
	for _, requirement := range sel.fields.Requirements() {
		equal := k.field(v, requirement.Field) == requirement.Value
		if equal != (requirement.Operator != "!=") {
			return false
		}
	}
	return true
}

// field returns a selectable field in its text form.
func (k *kind) field(v *version, field string) string {
	switch field {
	case "metadata.name":
		return v.name
	case "metadata.namespace":
		return v.namespace
	}
	return builtin.Field(k.gvk, v.contentAs(k), field)
}

// continuation is the content of a continue token.
type continuation struct {
	Revision uint64 `json:"rv"`
	After    string `json:"start"` // namespace/name of the last returned object
}

// inconsistent is the revision of a token that continues a list with the objects as they are then.
const inconsistent = 0

// expiredContinue is the answer to a token whose revision is no longer known. As upstream, it has
// a token with which the client can get the rest of the list nevertheless.
func expiredContinue(c continuation) *failure {
	f := fail(apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token " +
		"results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."))
	f.status.Continue = continuation{Revision: inconsistent, After: c.After}.token()
	return f
}

func (c continuation) token() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // two plain fields
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseContinuation(token string) (continuation, *failure) {
	var c continuation
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fail(apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + err.Error()))
	}
	return c, nil
}

func (s *Server) list(k *kind, r *Request) *Response {
	sel, failure := newSelection(k, r)
	if failure != nil {
		return failure.response()
	}
	revision, from, failure := s.listFrom(r)
	if failure != nil {
		return failure.response()
	}
	limit := 0
	if text := r.Query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			limit = 0
		}
	}
	var items []*version
	token, remaining := "", 0
	for _, v := range s.store.at(s.store.table(k), revision, r.Namespace) {
		if from != "" && v.namespace+"/"+v.name <= from || !sel.matches(k, v) {
			continue
		}
		if limit > 0 && len(items) == limit {
			remaining++
			continue
		}
		items = append(items, v)
	}
	if remaining > 0 {
		last := items[len(items)-1]
		token = continuation{Revision: revision, After: last.namespace + "/" + last.name}.token()
		if !sel.labels.Empty() || !sel.fields.Empty() {
			remaining = 0 // as upstream, which does not count what it would have to filter
		}
	}
	return respond(http.StatusOK, encodeList(k, items, revision, token, remaining))
}

// listFrom returns the revision at which a list shows the objects, and the object after which it
// starts.
func (s *Server) listFrom(r *Request) (revision uint64, from string, f *failure) {
	if token := r.Query.Get("continue"); token != "" {
		c, f := parseContinuation(token)
		if f != nil {
			return 0, "", f
		}
		switch {
		case r.Query.Get("resourceVersion") != "" && r.Query.Get("resourceVersion") != "0":
			return 0, "", fail(apierrors.NewBadRequest("specifying resource version is not allowed when using continue"))
		case c.Revision == inconsistent:
			return s.store.revision, c.After, nil
		case c.Revision <= s.store.expired:
			return 0, "", expiredContinue(c)
		}
		return c.Revision, c.After, nil
	}
	text, match := r.Query.Get("resourceVersion"), r.Query.Get("resourceVersionMatch")
	if text == "" || text == "0" {
		return s.store.revision, "", nil
	}
	asked, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, "", fail(apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err)))
	}
	if asked > s.store.revision {
		return 0, "", tooLarge(asked, s.store.revision)
	}
	if match != string(metav1.ResourceVersionMatchExact) {
		return s.store.revision, "", nil
	}
	if asked <= s.store.expired {
		return 0, "", fail(apierrors.NewResourceExpired("The resourceVersion for the provided list is too old."))
	}
	return asked, "", nil
}

// tooLarge is the answer of the real server for a resource version from the future.
func tooLarge(asked, current uint64) *failure {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return &failure{err.ErrStatus}
}

// encodeList joins the encoded objects to a list.
func encodeList(k *kind, items []*version, revision uint64, token string, remaining int) []byte {
	b := []byte(`{"kind":"` + k.listKind + `","apiVersion":"` + k.gvr.GroupVersion().String() + `","metadata":{"resourceVersion":"`)
	b = strconv.AppendUint(b, revision, 10)
	b = append(b, '"')
	if token != "" || k.definition != nil { // lists of custom resources always have the field
		b = append(b, `,"continue":"`+token+`"`...)
		if remaining > 0 {
			b = append(b, `,"remainingItemCount":`...)
			b = strconv.AppendInt(b, int64(remaining), 10)
		}
	}
	b = append(b, `},"items":[`...)
	for i, v := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v.encodeItem(k)...)
	}
	return append(b, "]}\n"...)
}
