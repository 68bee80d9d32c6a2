// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// reviewer answers questions about permissions.
type reviewer struct{ *registry }

// review answers the creation of a review: a question about permissions that is written as an
// object and never stored.
func (v reviewer) review(k *kind, r *Request) *Response {
	if r.Verb != "create" || r.Name != "" {
		return fail(apierrors.NewMethodNotSupported(k.gvr.GroupResource(), r.Verb)).response()
	}
	w := &writeContext{request: r, kind: k}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	tracked := &unstructured.Unstructured{Object: content}
	if failure := w.trackUpdate(v.registry, nil, tracked); failure != nil {
		return failure.response()
	}
	content = tracked.Object
	obj := builtin.New(k.gvk)
	if err := json.Unmarshal(encode(content), obj); err != nil {
		return fail(apierrors.NewBadRequest(err.Error())).response()
	}
	var err error
	switch obj := obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		err = v.reviewAccess(&obj.ObjectMeta, r.user(), obj.Spec.ResourceAttributes, obj.Spec.NonResourceAttributes, &obj.Status)
	case *authorizationv1.SubjectAccessReview:
		err = v.reviewSubject(&obj.ObjectMeta, &obj.Spec, &obj.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		err = v.reviewLocal(r, obj)
	case *authorizationv1.SelfSubjectRulesReview:
		err = v.reviewRules(r.user(), obj)
	case *authenticationv1.SelfSubjectReview:
		obj.ObjectMeta = metav1.ObjectMeta{}
		obj.CreationTimestamp = metav1.NewTime(v.now())
		obj.Status.UserInfo = authenticationv1.UserInfo{Username: r.user().GetName(), UID: r.user().GetUID(), Groups: r.user().GetGroups()}
	case *authenticationv1.TokenReview:
		err = v.reviewToken(obj)
	default:
		return notImplemented(k.gvk.Kind).response()
	}
	if err != nil {
		return fail(err).response()
	}
	body, err := json.Marshal(obj)
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	return respond(http.StatusCreated, append(body, '\n'))
}

// invalidReview refuses a review. As upstream, the error does not name its kind.
func invalidReview(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func (v reviewer) reviewAccess(m *metav1.ObjectMeta, who user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) error {
	if err := invalidReview(append(oneOf(resource, path), emptyMetadata(m)...)); err != nil {
		return err
	}
	v.decide(who, resource, path, status)
	return nil
}

// oneOf checks that a review asks either about a resource or about a path.
func oneOf(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	spec := field.NewPath("spec")
	switch {
	case resource != nil && path != nil:
		return field.ErrorList{field.Invalid(spec.Child("nonResourceAttributes"), path, "cannot be specified in combination with resourceAttributes")}
	case resource == nil && path == nil:
		return field.ErrorList{field.Invalid(spec, path, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

func emptyMetadata(m *metav1.ObjectMeta) field.ErrorList {
	bare := m.DeepCopy()
	bare.ManagedFields = nil
	if reflect.DeepEqual(*bare, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), m, "must be empty")}
}

func (v reviewer) reviewSubject(m *metav1.ObjectMeta, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	errs := oneOf(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	if err := invalidReview(append(errs, emptyMetadata(m)...)); err != nil {
		return err
	}
	v.decide(&user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}, spec.ResourceAttributes, spec.NonResourceAttributes, status)
	return nil
}

func (v reviewer) reviewLocal(r *Request, obj *authorizationv1.LocalSubjectAccessReview) error {
	bare := obj.ObjectMeta.DeepCopy()
	bare.Namespace = ""
	if a := obj.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		return invalidReview(field.ErrorList{field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace, "must match metadata.namespace")})
	}
	obj.Namespace = r.Namespace
	return v.reviewSubject(bare, &obj.Spec, &obj.Status)
}

// decide asks the authorizer, or allows everything if there is none.
func (v reviewer) decide(who user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) {
	if v.authorizer == nil || who == administrator {
		status.Allowed = true
		return
	}
	a := authorizer.AttributesRecord{User: who}
	if resource != nil {
		a.ResourceRequest = true
		a.Verb, a.Namespace, a.Name = resource.Verb, resource.Namespace, resource.Name
		a.APIGroup, a.APIVersion, a.Resource, a.Subresource = resource.Group, resource.Version, resource.Resource, resource.Subresource
	} else {
		a.Verb, a.Path = path.Verb, path.Path
	}
	decision, reason, err := v.authorizer.Authorize(context.Background(), a)
	status.Allowed, status.Denied, status.Reason = decision == authorizer.DecisionAllow, decision == authorizer.DecisionDeny, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
}

func (v reviewer) reviewRules(who user.Info, obj *authorizationv1.SelfSubjectRulesReview) error {
	if obj.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	// As upstream, the answer does not repeat the question.
	namespace := obj.Spec.Namespace
	obj.ObjectMeta, obj.Spec = metav1.ObjectMeta{}, authorizationv1.SelfSubjectRulesReviewSpec{}
	obj.Status = authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	resolver, ok := v.authorizer.(authorizer.RuleResolver)
	if !ok || who == administrator {
		obj.Status.ResourceRules = append(obj.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		obj.Status.NonResourceRules = append(obj.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
		return nil
	}
	resources, paths, incomplete, err := resolver.RulesFor(context.Background(), who, namespace)
	for _, rule := range resources {
		obj.Status.ResourceRules = append(obj.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range paths {
		obj.Status.NonResourceRules = append(obj.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs()})
	}
	obj.Status.Incomplete = incomplete
	if err != nil {
		obj.Status.EvaluationError = err.Error()
	}
	return nil
}

// reviewToken says whose token it is. The server knows those that it has issued to ServiceAccounts.
func (v reviewer) reviewToken(obj *authenticationv1.TokenReview) error {
	if obj.Spec.Token == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("token is required for %s in authentication", obj.Kind))
	}
	who, audiences, err := tokens(v).check(obj.Spec.Token, obj.Spec.Audiences)
	if err != nil {
		obj.Status = authenticationv1.TokenReviewStatus{Error: err.Error()}
		return nil
	}
	obj.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: *who, Audiences: audiences}
	return nil
}
