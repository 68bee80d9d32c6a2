// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// templateHash returns the part of a name that stands for a template. Equal templates have equal
// hashes, in each run.
func templateHash(template *corev1.PodTemplateSpec) string {
	data, err := json.Marshal(template)
	if err != nil {
		panic(err) // a template that was decoded can be encoded
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hashOf(string(data))), 10))
}

// isOfTemplate reports whether what has a hash and a template was made for a template. The
// controllers of a cluster that was copied compute other hashes, so equal templates count, too.
func isOfTemplate(hash string, made, template *corev1.PodTemplateSpec) bool {
	if hash == templateHash(template) {
		return true
	}
	made = made.DeepCopy()
	delete(made.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(made, template)
}

// revisionData is what a ControllerRevision keeps of a StatefulSet or DaemonSet.
type revisionData struct {
	Spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// ensureRevision returns the ControllerRevision of a template, and all others of its owner in the
// order of their numbers. The one of the current template has the highest number. Those that the
// selector of the owner matches and that have no controller are adopted.
func ensureRevision(s *Stage, owner client.Object, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) (now *appsv1.ControllerRevision, others []*appsv1.ControllerRevision, err error) {
	if err := (claim[*appsv1.ControllerRevision]{selector: selector}).make(s, owner); err != nil {
		return nil, nil, err
	}
	hash := templateHash(template)
	all := Children[*appsv1.ControllerRevision](s, owner)
	slices.SortStableFunc(all, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	next := int64(1)
	for _, r := range all {
		next = max(next, r.Revision+1)
		made, err := templateOf(r)
		if err != nil {
			return nil, nil, err
		}
		if now == nil && isOfTemplate(r.Labels[appsv1.ControllerRevisionHashLabelKey], made, template) {
			now = r
		} else {
			others = append(others, r)
		}
	}
	if now != nil {
		if now.Revision < next-1 {
			now.Revision = next // a rollback
		}
		delete(now.Annotations, HistoryAnnotation)
		return now, others, s.Update(now)
	}
	data := revisionData{}
	data.Spec.Template = *template
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the template of %s: %w", describe(owner), err)
	}
	now = &appsv1.ControllerRevision{Revision: next, Data: runtime.RawExtension{Raw: raw}}
	now.Name, now.GenerateName = owner.GetName()+"-"+hash, owner.GetName()+"-" // comparisons leave the hash out
	now.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}
	maps.Copy(now.Labels, template.Labels)
	return now, others, s.CreateFor(owner, now)
}

// templateOf returns the template that a ControllerRevision keeps.
func templateOf(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	data := revisionData{}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", describe(r), err)
	}
	return &data.Spec.Template, nil
}

// keepRevisions marks old ControllerRevisions as history, and deletes the oldest when there are more
// than a limit.
func keepRevisions(s *Stage, old []*appsv1.ControllerRevision, limit int) error {
	var errs []error
	for i, r := range old {
		if len(old)-i > limit {
			errs = append(errs, s.Delete(r))
			continue
		}
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, HistoryAnnotation, "true")
		errs = append(errs, s.Update(r))
	}
	return errors.Join(errs...)
}
