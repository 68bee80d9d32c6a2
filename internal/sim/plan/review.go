// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// hook is a webhook that can be asked.
type hook struct {
	name, configuration string
	client              admissionregistrationv1.WebhookClientConfig
	policy              *admissionregistrationv1.FailurePolicyType
	seconds             *int32
	effects             *admissionregistrationv1.SideEffectClass
	versions            []string
	conditions          int
}

// caller is a source that reaches the Services of its cluster.
type caller interface {
	// callService sends a body to a Service and returns the answer.
	callService(ctx context.Context, service *admissionregistrationv1.ServiceReference, body []byte) ([]byte, error)
}

// errUnreachable is returned for a webhook that the cluster may reach, but not this process. What it
// would have answered is not known.
var errUnreachable = errors.New("it cannot be reached from here")

// whyNot returns why a webhook cannot be asked, and "" if it can.
func (h *hook) whyNot(w apiserver.Write) string {
	switch {
	case h.effects == nil || *h.effects != admissionregistrationv1.SideEffectClassNone && *h.effects != admissionregistrationv1.SideEffectClassNoneOnDryRun:
		return "it has side effects, and may not be asked without them"
	case h.conditions > 0:
		return "whether it would be asked, because its matchConditions are not evaluated"
	case !slices.Contains(h.versions, "v1"):
		return "it does not know AdmissionReview v1"
	case w.Request.Subresource == "scale":
		return "it is asked about an object Scale, which the copy does not make"
	}
	return ""
}

// call asks a webhook about a write, as a dry run, and does what the API server does with the answer.
func (g *guards) call(of guard, w apiserver.Write) (warnings []string, err error) {
	if why := of.hook.whyNot(w); why != "" {
		g.dontKnow(of, why)
		return nil, nil
	}
	response, err := g.review(of, w)
	switch {
	case errors.Is(err, errUnreachable):
		g.dontKnow(of, err.Error())
		return nil, nil
	case err != nil && of.hook.policy != nil && *of.hook.policy == admissionregistrationv1.Ignore:
		return nil, nil
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", of.hook.name, err))
	case !response.Allowed:
		return response.Warnings, webhookerrors.ToStatusErr(of.hook.name, response.Result)
	case len(response.Patch) == 0:
		return response.Warnings, nil
	}
	if err := patched(w.Object, response.Patch); err != nil {
		return response.Warnings, apierrors.NewInternalError(fmt.Errorf("the patch of webhook %q: %w", of.hook.name, err))
	}
	return response.Warnings, nil
}

func patched(obj *unstructured.Unstructured, patch []byte) error {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return err
	}
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	if data, err = operations.Apply(data); err != nil {
		return err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return err
	}
	obj.Object = content
	return nil
}

// review sends the review of a write to a webhook and checks the answer as the API server does.
func (g *guards) review(of guard, w apiserver.Write) (*admissionv1.AdmissionResponse, error) {
	review, err := reviewOf(w)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	seconds := int32(10)
	if of.hook.seconds != nil {
		seconds = *of.hook.seconds
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	answer, err := g.send(ctx, of.hook, body)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	got := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(answer, got); err != nil {
		return nil, fmt.Errorf("failed to call webhook: reading its answer: %w", err)
	}
	return got.Response, checkAnswer(got, review.Request.UID, of.mutating)
}

func checkAnswer(got *admissionv1.AdmissionReview, uid any, mutating bool) error {
	want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	switch r := got.Response; {
	case r == nil:
		return errors.New("webhook response was absent")
	case any(r.UID) != uid:
		return fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case got.GroupVersionKind() != want:
		return fmt.Errorf("expected webhook response of %s, got %s", want, got.GroupVersionKind())
	case len(r.Patch) > 0 && !mutating:
		return errors.New("validating webhook may not return response.patch")
	case len(r.Patch) > 0 && (r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch):
		return errors.New("webhook returned response.patch, but no response.patchType of JSONPatch")
	}
	return nil
}

// reviewOf returns the review of a write. Who writes is not known: in the cluster, the operator is
// another user.
func reviewOf(w apiserver.Write) (*admissionv1.AdmissionReview, error) {
	gvk := metav1.GroupVersionKind{Group: w.Kind.Group, Version: w.Kind.Version, Kind: w.Kind.Kind}
	resource := metav1.GroupVersionResource{Group: w.Request.Resource.Group, Version: w.Request.Resource.Version, Resource: w.Request.Resource.Resource}
	dry, name := true, w.Request.Name
	if w.Object != nil && name == "" {
		name = w.Object.GetName()
	}
	request := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: gvk, Resource: resource, SubResource: w.Request.Subresource, RequestKind: &gvk, RequestResource: &resource,
		RequestSubResource: w.Request.Subresource, Name: name, Namespace: w.Request.Namespace, Operation: admissionv1.Operation(operation(w)),
		UserInfo: authenticationv1.UserInfo{Username: "ctrlkit plan"}, DryRun: &dry, Options: runtime.RawExtension{Raw: optionsOf(w)},
	}
	for obj, raw := range map[*unstructured.Unstructured]*runtime.RawExtension{w.Object: &request.Object, w.Old: &request.OldObject} {
		if obj == nil {
			continue
		}
		var err error
		if raw.Raw, err = json.Marshal(obj.Object); err != nil {
			return nil, fmt.Errorf("encoding the object: %w", err)
		}
	}
	review := &admissionv1.AdmissionReview{Request: request}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	return review, nil
}

func optionsOf(w apiserver.Write) []byte {
	operation := string(operation(w))
	return fmt.Appendf(nil, `{"apiVersion":"meta.k8s.io/v1","kind":"%s%sOptions","dryRun":["All"]}`, operation[:1], strings.ToLower(operation[1:]))
}

// send sends a review to a webhook.
func (g *guards) send(ctx context.Context, h *hook, body []byte) ([]byte, error) {
	switch {
	case h.client.URL != nil:
		return post(ctx, *h.client.URL, h.client.CABundle, body)
	case h.client.Service == nil:
		return nil, errors.New("the webhook has neither a URL nor a Service")
	case g.caller == nil:
		return nil, fmt.Errorf("%w: no cluster is read that has its Service", errUnreachable)
	}
	return g.caller.callService(ctx, h.client.Service, body)
}

// post sends a body to a URL. Like the API server, it trusts the given authority, or those of the
// system, and says how long it waits.
func post(ctx context.Context, url string, authority, body []byte) ([]byte, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("the caBundle has no certificate")
		}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if text := timeoutOf(ctx); text != "" {
		query := request.URL.Query()
		query.Set("timeout", text)
		request.URL.RawQuery = query.Encode()
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: transport}).Do(request)
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	case err != nil:
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s: %.200s", response.Status, answer)
	}
	return answer, err
}

// timeoutOf returns the value of the parameter timeout, and "" for none.
func timeoutOf(ctx context.Context) string {
	end, ok := ctx.Deadline()
	if !ok {
		return ""
	}
	return time.Until(end).Round(time.Second).String()
}

// callService sends a body to a Service through the API server's proxy, which needs the right to
// create services/proxy. Unlike a call of the API server itself, it does not check the certificate.
func (c *Cluster) callService(ctx context.Context, service *admissionregistrationv1.ServiceReference, body []byte) ([]byte, error) {
	port := int32(443)
	if service.Port != nil {
		port = *service.Port
	}
	path := ""
	if service.Path != nil {
		path = *service.Path
	}
	answer, err := c.discovery.RESTClient().Post().
		AbsPath(fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy%s", service.Namespace, service.Name, port, path)).
		Param("timeout", timeoutOf(ctx)).SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return answer, err
}
