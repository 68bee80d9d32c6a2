// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A RequestStatus shows which request to reconcile an object now was handled last. The status of a
// kind embeds it:
//
//	type BucketStatus struct {
//		policy.RequestStatus `json:",inline"`
//		...
//	}
//
// A user who has requested a reconcile can then wait for it:
//
//	kubectl annotate bucket b policy.ctrlkit.dev/reconcile-now=42 --overwrite
//	kubectl wait bucket b --for=jsonpath='{.status.lastHandledReconcileAt}'=42
//
// A request of the namespace is for all objects in it, and each has a field of its own for it:
//
//	kubectl annotate namespace prod policy.ctrlkit.dev/reconcile-now=42 --overwrite
//	kubectl wait bucket -n prod --all --for=jsonpath='{.status.lastHandledNamespaceReconcileAt}'=42
type RequestStatus struct {
	// LastHandledReconcileAt is the value of the annotation policy.ctrlkit.dev/reconcile-now that
	// was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// LastHandledNamespaceReconcileAt is the value of that annotation of the namespace that was
	// handled last.
	// +optional
	LastHandledNamespaceReconcileAt string `json:"lastHandledNamespaceReconcileAt,omitempty"`
}

// A requestStatusAccessor is an object that returns its [RequestStatus], or nil. A type with a
// struct Status that embeds one needs no method: [StatusOf] finds it.
type requestStatusAccessor interface{ GetRequestStatus() *RequestStatus }

// StatusOf returns the request status of an object, to be changed in place. It is nil if the object
// has none: such a kind reconciles on request, and does not acknowledge it.
func StatusOf(object any) *RequestStatus {
	if o, ok := object.(requestStatusAccessor); ok {
		return o.GetRequestStatus()
	}
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	status := v.Elem().FieldByName("Status")
	if !status.IsValid() || status.Kind() != reflect.Struct || !status.CanAddr() {
		return nil
	}
	for i := range status.NumField() {
		if field := status.Type().Field(i); field.Anonymous && field.Type == reflect.TypeFor[RequestStatus]() {
			return status.Field(i).Addr().Interface().(*RequestStatus) //nolint:errcheck // it has the type
		}
	}
	return nil
}

// A Request is what a user asks for with [ReconcileNowAnnotation]: to observe and reconcile an
// object now, although nothing has changed and no time has come: one, or all of a namespace. The
// value is a token that the user chooses, another one for each request, such as the time.
//
// It is taken when a reconcile begins, and acknowledged by the same reconcile:
//
//	request := decision.Request() // or policy.RequestOf(bucket), without namespaces
//	... // observe
//	request.Acknowledge(&bucket.Status.RequestStatus)
//
// A token that arrives in between is pending for the next reconcile.
type Request struct{ token, namespace string }

// RequestOf returns the request of an object, without that of its namespace. It may be none.
func RequestOf(object metav1.Object) Request {
	return Request{token: object.GetAnnotations()[ReconcileNowAnnotation]}
}

// Request returns the request of the object that the decision is about, and that of its namespace
// if the annotations of namespaces count.
func (d Decision) Request() Request { return d.request }

// Pending reports whether there is a request that was not acknowledged. Without a status it can't
// be known, and it reports false. An empty token is no request.
func (r Request) Pending(status *RequestStatus) bool {
	return status != nil && (isNew(r.token, status.LastHandledReconcileAt) || isNew(r.namespace, status.LastHandledNamespaceReconcileAt))
}

// isNew reports whether a token is not the one that was handled. An empty one is none.
func isNew(token, handled string) bool { return token != "" && token != handled }

// Acknowledge records in the status that the request was handled. It is called only after the
// reconcile has really observed what the object stands for: not after an error, and not when it has
// used what an earlier reconcile observed. Without a request or a status it does nothing.
func (r Request) Acknowledge(status *RequestStatus) {
	if status == nil {
		return
	}
	status.LastHandledReconcileAt = cmp.Or(r.token, status.LastHandledReconcileAt)
	status.LastHandledNamespaceReconcileAt = cmp.Or(r.namespace, status.LastHandledNamespaceReconcileAt)
}
