// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// A Request is a request to the API server.
type Request struct {
	Method      string
	Path        string
	Query       url.Values
	ContentType string
	Accept      string
	UserAgent   string
	Body        []byte

	// Actor names the client, for [Change].Actor. The server itself does not use it.
	Actor string

	// Verb is get, list, watch, create, update, patch, delete or deletecollection. It is empty if
	// the path is not that of an object, and "unknown" if no verb belongs to the method.
	Verb        string
	Resource    schema.GroupVersionResource
	Namespace   string
	Name        string
	Subresource string
	DryRun      bool

	// User is the user whose permissions [Options].Authorizer checks. If it is nil, the request may
	// do everything. ParseRequest takes it from the headers for impersonation, as with
	// rest.Config.Impersonate.
	User user.Info

	unreadable *failure // if set, the answer to the request
	remote     bool     // it came over the network
}

// ParseRequest reads an HTTP request and its body. It translates a body of YAML or protobuf into
// JSON.
func ParseRequest(r *http.Request) (*Request, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1)); err != nil {
			return nil, fmt.Errorf("reading the body of %s %s: %w", r.Method, r.URL.Path, err)
		}
		if err := r.Body.Close(); err != nil {
			return nil, fmt.Errorf("closing the body of %s %s: %w", r.Method, r.URL.Path, err)
		}
	}
	request := &Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), ContentType: r.Header.Get("Content-Type"), Accept: r.Header.Get("Accept"),
		UserAgent: r.Header.Get("User-Agent"), Body: body,
	}
	request.User = impersonated(r.Header)
	request.resolve()
	request.translate()
	return request, nil
}

// NewRequest returns a request. path may have a query.
func NewRequest(method, path, contentType string, body []byte) (*Request, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("reading the path %q: %w", path, err)
	}
	request := &Request{Method: method, Path: u.Path, Query: u.Query(), ContentType: contentType, Body: bytes.Clone(body)}
	request.resolve()
	return request, nil
}

// infos reads paths and methods as the real server does.
var infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// resolve derives the verb, the resource and the object of a request from its path and method. The
// query, of which only one parameter matters, is not decoded for that.
func (r *Request) resolve() {
	info, err := infos.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: r.Path}})
	if err != nil || !info.IsResourceRequest {
		return
	}
	r.Verb = cmp.Or(info.Verb, "unknown")
	if r.Verb == "list" && r.isSet("watch") {
		r.Verb = "watch"
	}
	r.Resource = schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	r.Name = info.Name
	if info.Resource != "namespaces" { // one of which has itself as its namespace there
		r.Namespace = info.Namespace
	}
	if info.Subresource != "" {
		r.Subresource = strings.Join(info.Parts[2:], "/")
	}
	r.DryRun = len(r.Query["dryRun"]) > 0
}

// isSet reports whether a parameter is true, as the API server reads it: clients in Python write
// True.
func (r *Request) isSet(parameter string) (set bool) {
	values := r.Query[parameter]
	_ = runtime.Convert_Slice_string_To_bool(&values, &set, nil) //nolint:errcheck // every text is true or false
	return set
}

// manager returns the field manager of a request. As upstream, the default is the first part of the
// user agent.
func (r *Request) manager() string {
	if m := r.Query.Get("fieldManager"); m != "" {
		return m
	}
	agent, _, _ := strings.Cut(r.UserAgent, "/")
	if agent == "" {
		return "unknown"
	}
	return agent
}

// A Response answers a Request.
type Response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// HTTP returns the response as one of net/http, in the form that the header Accept of the request
// asks for.
func (r *Response) HTTP(request *http.Request) *http.Response {
	header := r.Header
	if header == nil {
		header = http.Header{}
	}
	body := r.Body
	if accept := request.Header.Get("Accept"); !plain(accept) && header.Get("Content-Type") == runtime.ContentTypeJSON {
		var contentType string
		if body, contentType = encodeAs(body, accept); contentType != runtime.ContentTypeJSON {
			header = header.Clone()
			header.Set("Content-Type", contentType)
		}
	}
	return &http.Response{
		StatusCode: r.Code, Status: fmt.Sprintf("%d %s", r.Code, http.StatusText(r.Code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}
}
