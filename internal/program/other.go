// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/trial"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// foreign is the annotation of an object of a stranger.
const foreign = "example.com/of-another"

func isForeign(content map[string]any) bool {
	return (&unstructured.Unstructured{Object: content}).GetAnnotations()[foreign] != ""
}

// exists reports whether the object of a request is there.
func (r *runner) exists(request *apiserver.Request) bool {
	if request.Name == "" {
		return false
	}
	_, err := r.cluster.Do("sim", "ctrlkit", http.MethodGet, trial.PathOf(request.Resource, request.Namespace, request.Name), "", nil)
	return err == nil
}

// occupies reports whether a stranger takes a name that the operator needs.
func (r *runner) occupies() bool {
	return slices.ContainsFunc(r.plan.Faults, func(f fault.Fault) bool { return f.Kind == fault.OccupyName })
}

// other does what another client does just before a write.
func (r *runner) other(kind fault.Kind, request *apiserver.Request) {
	switch kind {
	case fault.TouchBeforeWrite:
		_, _ = r.cluster.Do(otherActor, "other", http.MethodPatch, trial.PathOf(request.Resource, request.Namespace, request.Name), "application/merge-patch+json", //nolint:errcheck // it is in the trace
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{touched: "true"}}})
	case fault.OccupyName:
		if occupant := occupantOf(request); occupant != nil {
			_, _ = r.cluster.Do(otherActor, "other", http.MethodPost, trial.PathOf(request.Resource, request.Namespace, ""), "application/json", occupant) //nolint:errcheck // as above
		}
	}
}

// namesObject reports whether a write creates an object whose name the operator has chosen, if the
// object is not there.
func namesObject(r *apiserver.Request) bool {
	if r.Subresource != "" {
		return false
	}
	name := nameOf(r)
	return name != "" && (r.Verb == "create" && !strings.HasSuffix(name, "*") || applies(r))
}

func applies(r *apiserver.Request) bool {
	return r.Verb == "patch" && strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// occupantOf returns the object of a stranger with the name of the one that a request creates: the
// same without anything that says that it is the operator's, and with other data. It is nil if the
// request can't be read.
func occupantOf(r *apiserver.Request) map[string]any {
	var content map[string]any
	if yaml.Unmarshal(r.Body, &content) != nil || content == nil { // in protobuf
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.Body, nil, nil)
		if err == nil {
			content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(decoded)
		}
		if err != nil {
			return nil
		}
	}
	metadata := map[string]any{"name": nameOf(r), "annotations": map[string]any{foreign: "true"}}
	if r.Namespace != "" {
		metadata["namespace"] = r.Namespace
	}
	content["metadata"] = metadata
	delete(content, "status")
	switch fmt.Sprint(content["kind"]) {
	case "ConfigMap":
		delete(content, "binaryData")
		content["data"] = map[string]any{"another": "value"}
	case "Secret":
		delete(content, "stringData")
		content["data"] = map[string]any{"another": "dmFsdWU="}
		delete(content, "type") // it may ask for keys
	}
	return content
}
