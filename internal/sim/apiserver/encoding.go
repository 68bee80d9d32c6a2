// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// The server itself works with JSON. This file translates at its border: [ParseRequest] makes JSON
// of the body of a request, [Response.HTTP] and [Framing] make of JSON what the client accepts. The
// serializers and the negotiation are those of the real server.

// codecs are the serializers of the built-in kinds: JSON, YAML and protobuf.
var codecs = sync.OnceValue(func() serializer.CodecFactory { return serializer.NewCodecFactory(builtin.Scheme()) })

// accepted is what a client wants an answer to be.
type accepted struct {
	info runtime.SerializerInfo
	as   *schema.GroupVersionKind // PartialObjectMetadata, its list, Table, or nil
}

// endpoint says what an endpoint can be asked for: custom resources have no protobuf, and a Status
// is never transformed.
type endpoint struct{ custom, status bool }

func (e endpoint) AllowsMediaTypeTransform(_, subtype string, target *schema.GroupVersionKind) bool {
	switch {
	case target == nil:
		return !e.custom || subtype != "vnd.kubernetes.protobuf"
	case e.status || target.Group != metav1.GroupName || target.Version != "v1" && target.Version != "v1beta1":
		return false
	}
	return target.Kind == "PartialObjectMetadata" || target.Kind == "PartialObjectMetadataList" || target.Kind == tableKind
}

func (endpoint) AllowsServerVersion(version string) bool { return version == "v1" }
func (endpoint) AllowsStreamSchema(s string) bool        { return s == "watch" }

// negotiate returns the form in which an endpoint answers a request with a header Accept. ok is
// false if the endpoint has none that the client accepts.
func (e endpoint) negotiate(accept string) (a accepted, ok bool) {
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, codecs().SupportedMediaTypes(), e)
	return accepted{options.Accepted, options.Convert}, ok
}

// plain reports whether a header Accept can be answered with JSON without a closer look. Nearly all
// requests are of this kind.
func plain(accept string) bool {
	return accept == "" || accept == "application/json" || accept == "*/*" ||
		strings.HasPrefix(accept, "application/json") && !strings.Contains(accept, "as=Partial") && !strings.Contains(accept, "as="+tableKind) && !strings.Contains(accept, "q=")
}

// checkAccept returns the answer 406 if a kind has no form that the client accepts.
func (k *kind) checkAccept(r *Request) *failure {
	if plain(r.Accept) {
		return nil
	}
	a, ok := endpoint{custom: k.definition != nil}.negotiate(r.Accept)
	if ok && (r.Verb != "watch" || a.info.StreamSerializer != nil) {
		return nil
	}
	supported, streaming := negotiation.MediaTypesForSerializer(codecs())
	if k.definition != nil {
		if r.Verb == "watch" {
			supported = streaming
		}
		return fail(negotiation.NewNotAcceptableError(supported))
	}
	// The paths of built-in kinds are negotiated earlier, by the router.
	if r.Verb == "watch" || r.Verb == "list" {
		supported = append(slices.Clip(supported), streaming...)
	}
	return &failure{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Details: &metav1.StatusDetails{},
		Message: "406: Not Acceptable\n\nAvailable representations: " + strings.Join(supported, ", "),
	}}
}

// translate makes JSON of the body of a request, and notes why if it cannot.
func (r *Request) translate() {
	if len(r.Body) == 0 || r.ContentType == "" || r.ContentType == runtime.ContentTypeJSON || r.Method == http.MethodPatch || r.Verb == "" {
		return
	}
	unsupported := func() {
		supported, _ := negotiation.MediaTypesForSerializer(codecs())
		r.unreadable = fail(negotiation.NewUnsupportedMediaTypeError(supported))
	}
	mediaType, _, err := mime.ParseMediaType(r.ContentType)
	if err != nil {
		unsupported()
		return
	}
	switch mediaType {
	case runtime.ContentTypeJSON:
	case runtime.ContentTypeYAML:
		body, err := yaml.YAMLToJSON(r.Body)
		if err != nil {
			r.unreadable = fail(apierrors.NewBadRequest(fmt.Sprintf("error converting YAML to JSON: %v", err)))
			return
		}
		r.Body, r.ContentType = body, runtime.ContentTypeJSON
	case runtime.ContentTypeProtobuf:
		body, err := fromProtobuf(r.Body)
		switch {
		case runtime.IsNotRegisteredError(err):
			unsupported() // a custom resource
		case err != nil:
			r.unreadable = fail(apierrors.NewBadRequest(err.Error()))
		default:
			r.Body, r.ContentType = body, runtime.ContentTypeJSON
		}
	default:
		unsupported()
	}
}

// fromProtobuf returns a document of protobuf as JSON.
func fromProtobuf(body []byte) ([]byte, error) {
	in := inputsOf(string(body))
	if known, ok := translations.find(in); ok {
		return known.([]byte), nil
	}
	data, err := convertProtobuf(body)
	if err == nil {
		translations.add(in, data)
	}
	return data, err
}

// These hold documents in other forms.
var (
	translations = newMemo(512) // JSON of protobuf
	encodings    = newMemo(512) // of answers
	frames       = newMemo(512)
)

func convertProtobuf(body []byte) ([]byte, error) {
	info, _ := runtime.SerializerInfoForMediaType(codecs().SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	obj, _, err := info.Serializer.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// encodeAs returns the body of an answer in the form that the client accepts, and its content type.
// A body that has no such form stays JSON.
func encodeAs(body []byte, accept string) ([]byte, string) {
	in := inputsOf(accept, string(body))
	if known, ok := encodings.find(in); ok {
		a := known.(answerBody)
		return a.data, a.contentType
	}
	data, contentType := convertAnswer(body, accept)
	encodings.add(in, answerBody{data, contentType})
	return data, contentType
}

type answerBody struct {
	data        []byte
	contentType string
}

func convertAnswer(body []byte, accept string) ([]byte, string) {
	var header metav1.TypeMeta
	if json.Unmarshal(body, &header) != nil || header.Kind == "" {
		return body, runtime.ContentTypeJSON
	}
	gvk := header.GroupVersionKind()
	if gvk.Group == metav1.GroupName && gvk.Kind == tableKind {
		return body, runtime.ContentTypeJSON // tables are made before, where the columns are known
	}
	known := builtin.Scheme().Recognizes(gvk)
	a, ok := endpoint{custom: !known, status: header.Kind == "Status"}.negotiate(accept)
	if !ok {
		return body, runtime.ContentTypeJSON
	}
	encoded, err := a.encode(body, header.Kind == "Status")
	if err != nil {
		return body, runtime.ContentTypeJSON
	}
	return encoded, a.info.MediaType
}

// encode returns an object, given as JSON, in the accepted form.
func (a accepted) encode(body []byte, status bool) ([]byte, error) {
	if a.as != nil && a.as.Kind != tableKind && !status {
		obj, err := partial(body, a.as.GroupVersion())
		if err != nil {
			return nil, err
		}
		return runtime.Encode(a.info.Serializer, obj)
	}
	switch a.info.MediaType {
	case runtime.ContentTypeJSON:
		return body, nil
	case runtime.ContentTypeYAML:
		return yaml.JSONToYAML(body)
	}
	obj, _, err := codecs().UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(a.info.Serializer, obj)
}

// partial returns the metadata of an object or of a list of objects, which are given as JSON.
func partial(body []byte, gv schema.GroupVersion) (runtime.Object, error) {
	var list struct {
		metav1.ListMeta `json:"metadata"`
		Items           *[]metav1.PartialObjectMetadata `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err == nil && list.Items != nil {
		out := &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta, Items: *list.Items}
		out.SetGroupVersionKind(gv.WithKind("PartialObjectMetadataList"))
		if len(out.Items) == 0 {
			out.Items = nil // as upstream, where it becomes null
		}
		for i := range out.Items {
			out.Items[i].SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
		}
		return out, nil
	}
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, obj); err != nil {
		return nil, err
	}
	obj = meta.AsPartialObjectMetadata(obj)
	obj.SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return obj, nil
}

// Framing is the form in which a client wants the events of a watch.
type Framing struct{ accepted }

// Framing returns the form in which a watch sends its events.
func (r *Request) Framing() Framing {
	if plain(r.Accept) {
		return Framing{}
	}
	custom := !builtin.Serves(r.Resource)
	a, ok := endpoint{custom: custom}.negotiate(r.Accept)
	switch {
	case !ok, a.info.StreamSerializer == nil, a.info.MediaType == runtime.ContentTypeJSON && a.as == nil, a.as != nil && a.as.Kind == tableKind:
		return Framing{}
	}
	return Framing{a}
}

// ContentType is the content type of the answer to the watch.
func (f Framing) ContentType() string {
	if f.info.MediaType == "" || f.info.MediaType == runtime.ContentTypeJSON {
		return runtime.ContentTypeJSON
	}
	return f.info.MediaType + ";stream=watch"
}

// Frame returns an event as the watch sends it: a line of JSON, or a message of protobuf with its
// length before it.
func (f Framing) Frame(e Event) []byte {
	if f.info.StreamSerializer == nil {
		return e.Frame()
	}
	as := schema.GroupVersionKind{}
	if f.as != nil {
		as = *f.as
	}
	in := inputsOf(f.info.MediaType, as, e.Type, string(e.Object))
	known, ok := frames.find(in)
	if !ok {
		known = f.frame(e)
		frames.add(in, known)
	}
	return known.([]byte)
}

func (f Framing) frame(e Event) []byte {
	object, err := f.encode(e.Object, e.Type == "ERROR")
	if err != nil {
		panic(fmt.Sprintf("encoding an event of %s: %v", e.Resource, err)) // the server has decoded it through the same type
	}
	event := &metav1.WatchEvent{Type: e.Type, Object: runtime.RawExtension{Raw: object}}
	var frame bytes.Buffer
	if err := streaming.NewEncoder(f.info.StreamSerializer.Framer.NewFrameWriter(&frame), f.info.StreamSerializer.Serializer).Encode(event); err != nil {
		panic(fmt.Sprintf("encoding an event of %s: %v", e.Resource, err))
	}
	return frame.Bytes()
}
