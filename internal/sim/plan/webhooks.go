// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// guard is what else decides about writes in the cluster: a webhook, or an admission policy.
type guard struct {
	title      string // "mutating webhook defaults.example.com"
	mutating   bool
	rules      []admissionregistrationv1.RuleWithOperations
	excluded   []admissionregistrationv1.RuleWithOperations
	namespaces labels.Selector
	objects    labels.Selector

	hook *hook // nil for a policy
}

// guards are the webhooks and the admission policies of the cluster, in the order in which they are
// asked.
type guards struct {
	list       []guard
	namespaces map[string]labels.Set
	ask        bool // the webhooks
	caller     caller

	mu      sync.Mutex                 // guards what follows
	notFor  map[string]map[string]bool // the kinds about which a guard was not asked, by its title
	unknown map[string]bool
}

// newGuards reads the webhooks and the admission policies of a cluster. It returns what of them
// could not be read.
func newGuards(ctx context.Context, o Options) (_ *guards, unread []string) {
	g := &guards{
		namespaces: map[string]labels.Set{}, ask: o.Webhooks,
		notFor: map[string]map[string]bool{}, unknown: map[string]bool{},
	}
	g.caller, _ = o.Source.(caller)
	read := func(name string, add func(content map[string]any) error) {
		resource := schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: "v1", Resource: name}
		contents, err := o.Source.Read(ctx, resource)
		slices.SortFunc(contents, func(a, b map[string]any) int {
			return strings.Compare((&unstructured.Unstructured{Object: a}).GetName(), (&unstructured.Unstructured{Object: b}).GetName())
		})
		for _, content := range contents {
			if err == nil {
				err = add(content)
			}
		}
		if err != nil && !apierrors.IsNotFound(err) { // a version of Kubernetes may lack the kind
			unread = append(unread, "whether the cluster has "+name+" could not be read: they are not asked")
		}
	}
	read("mutatingadmissionpolicies", func(content map[string]any) error { return g.addPolicy(content, "MutatingAdmissionPolicy", true) })
	read("mutatingwebhookconfigurations", g.addMutating)
	read("validatingadmissionpolicies", func(content map[string]any) error { return g.addPolicy(content, "ValidatingAdmissionPolicy", false) })
	read("validatingwebhookconfigurations", g.addValidating)
	contents, err := o.Source.Read(ctx, namespaces)
	if err != nil {
		return g, unread // it is named as what cannot be read
	}
	for _, content := range contents {
		obj := &unstructured.Unstructured{Object: content}
		g.namespaces[obj.GetName()] = obj.GetLabels()
	}
	return g, unread
}

func (g *guards) addMutating(content map[string]any) error {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, configuration); err != nil {
		return err
	}
	for _, w := range configuration.Webhooks {
		h := hook{
			name: w.Name, configuration: configuration.Name, client: w.ClientConfig, policy: w.FailurePolicy, seconds: w.TimeoutSeconds,
			effects: w.SideEffects, versions: w.AdmissionReviewVersions, conditions: len(w.MatchConditions),
		}
		if err := g.add("mutating webhook "+w.Name, true, w.Rules, w.NamespaceSelector, w.ObjectSelector, &h); err != nil {
			return err
		}
	}
	return nil
}

func (g *guards) addValidating(content map[string]any) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, configuration); err != nil {
		return err
	}
	for _, w := range configuration.Webhooks {
		h := hook{
			name: w.Name, configuration: configuration.Name, client: w.ClientConfig, policy: w.FailurePolicy, seconds: w.TimeoutSeconds,
			effects: w.SideEffects, versions: w.AdmissionReviewVersions, conditions: len(w.MatchConditions),
		}
		if err := g.add("validating webhook "+w.Name, false, w.Rules, w.NamespaceSelector, w.ObjectSelector, &h); err != nil {
			return err
		}
	}
	return nil
}

// addPolicy adds an admission policy. Those that validate and those that mutate are alike in what
// they are for.
func (g *guards) addPolicy(content map[string]any, kind string, mutating bool) error {
	spec, _, err := unstructured.NestedMap(content, "spec", "matchConstraints")
	if err != nil {
		return err
	}
	constraints := &admissionregistrationv1.MatchResources{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, constraints); err != nil {
		return err
	}
	name := (&unstructured.Unstructured{Object: content}).GetName()
	if err := g.add(kind+" "+name, mutating, unnamed(constraints.ResourceRules), constraints.NamespaceSelector, constraints.ObjectSelector, nil); err != nil {
		return err
	}
	g.list[len(g.list)-1].excluded = unnamed(constraints.ExcludeResourceRules)
	return nil
}

func unnamed(named []admissionregistrationv1.NamedRuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	var list []admissionregistrationv1.RuleWithOperations
	for _, rule := range named {
		list = append(list, rule.RuleWithOperations)
	}
	return list
}

func (g *guards) add(title string, mutating bool, of []admissionregistrationv1.RuleWithOperations, inNamespaces, objects *metav1.LabelSelector, h *hook) error {
	added := guard{title: title, mutating: mutating, rules: of, hook: h, namespaces: labels.Everything(), objects: labels.Everything()}
	var err error
	if inNamespaces != nil {
		if added.namespaces, err = metav1.LabelSelectorAsSelector(inNamespaces); err != nil {
			return err
		}
	}
	if objects != nil {
		if added.objects, err = metav1.LabelSelectorAsSelector(objects); err != nil {
			return err
		}
	}
	g.list = append(g.list, added)
	return nil
}

// admit decides about a write as the guards do, or notes that they were not asked.
func (g *guards) admit(w apiserver.Write) (warnings []string, err error) {
	byOthers := !trial.IsOperator(w.Request.Actor) && w.Request.Actor != trial.UserActor
	if w.Request.Actor == trial.ServerActor || w.Request.Resource.Group == admissionregistrationv1.GroupName || cluster.Ignored(w.Request.Resource) {
		return nil, nil
	}
	for _, guard := range g.list {
		if guard.mutating != w.Mutating || !guard.matches(w, g.namespaces) {
			continue
		}
		if !g.ask || guard.hook == nil || byOthers {
			g.notAsked(guard, w, byOthers)
			continue
		}
		more, err := g.call(guard, w)
		warnings = append(warnings, more...)
		if err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

// matches reports whether a guard is for a write.
func (h guard) matches(w apiserver.Write, namespaces map[string]labels.Set) bool {
	attributes := admission.NewAttributesRecord(nil, nil, w.Kind, w.Request.Namespace, w.Request.Name, w.Request.Resource, w.Request.Subresource, operation(w), nil, w.Request.DryRun, nil)
	match := func(rule admissionregistrationv1.RuleWithOperations) bool {
		return (&rules.Matcher{Rule: rule, Attr: attributes}).Matches()
	}
	return slices.ContainsFunc(h.rules, match) && !slices.ContainsFunc(h.excluded, match) &&
		h.inNamespace(w, namespaces) &&
		(w.Object != nil && h.objects.Matches(labels.Set(w.Object.GetLabels())) || w.Old != nil && h.objects.Matches(labels.Set(w.Old.GetLabels())))
}

// inNamespace reports whether the selector of namespaces selects that of a write: by the labels of a
// namespace itself, and by those of the namespace of an object. Cluster-scoped objects match any.
func (h guard) inNamespace(w apiserver.Write, namespaces map[string]labels.Set) bool {
	switch {
	case w.Kind == schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
		return w.Object != nil && h.namespaces.Matches(labels.Set(w.Object.GetLabels())) || w.Object == nil && h.namespaces.Matches(labels.Set(w.Old.GetLabels()))
	case w.Request.Namespace == "":
		return true
	}
	if known, ok := namespaces[w.Request.Namespace]; ok {
		return h.namespaces.Matches(known)
	}
	return h.namespaces.Matches(labels.Set{"kubernetes.io/metadata.name": w.Request.Namespace})
}

func operation(w apiserver.Write) admission.Operation {
	switch {
	case w.Object == nil:
		return admission.Delete
	case w.Old == nil:
		return admission.Create
	}
	return admission.Update
}

// notAsked notes that a guard was not asked.
func (g *guards) notAsked(of guard, w apiserver.Write, byOthers bool) {
	kind := w.Kind.Kind
	if byOthers {
		kind += " (of other controllers)"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.notFor[of.title] == nil {
		g.notFor[of.title] = map[string]bool{}
	}
	g.notFor[of.title][kind] = true
}

// dontKnow notes what is not known about the answer of a webhook.
func (g *guards) dontKnow(of guard, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unknown[fmt.Sprintf("what the %s would have answered: %s", of.title, why)] = true
}

// report returns what is assumed about guards that were not asked, and what is not known of others.
func (g *guards) report() (assumed, unknown []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for title, kinds := range g.notFor {
		text := fmt.Sprintf("the %s admits %s as they are: it is not asked", title, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		if strings.Contains(title, "webhook") && !g.ask {
			text += " (--webhooks)"
		}
		assumed = append(assumed, text)
	}
	return assumed, slices.Collect(maps.Keys(g.unknown))
}
