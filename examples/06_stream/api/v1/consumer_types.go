// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// ConditionStreamReady is True when the Stream of a Consumer can be used.
const ConditionStreamReady = "StreamReady"

// DeliverPolicy says with which message a consumer begins.
//
// +kubebuilder:validation:Enum=All;New;Last
type DeliverPolicy string

// The first message of a consumer.
const (
	DeliverAll  DeliverPolicy = "All"  // the first of the stream
	DeliverNew  DeliverPolicy = "New"  // the next one that is published
	DeliverLast DeliverPolicy = "Last" // the last of the stream
)

// ConsumerSpec is how a consumer should be.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="the name can't be added or removed: create another Consumer"
type ConsumerSpec struct {
	// Stream is the name of a Stream in the namespace of the Consumer. It can't be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the Stream can't be changed: create another Consumer"
	Stream string `json:"stream"`

	// Name is the durable name of the consumer in NATS. Without it, the name is made from the UID
	// of the object. It can't be changed.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name can't be changed: create another Consumer"
	// +optional
	Name string `json:"name,omitempty"`

	// FilterSubjects are the subjects that are delivered: all of the stream if there are none.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +listType=set
	// +optional
	FilterSubjects []string `json:"filterSubjects,omitempty"`

	// DeliverPolicy says with which message the consumer begins. NATS can't change it.
	//
	// +kubebuilder:default=All
	// +optional
	DeliverPolicy DeliverPolicy `json:"deliverPolicy,omitempty"`

	// AckWait is how long a message may stay unacknowledged until it is delivered again.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="use a positive duration"
	// +optional
	AckWait *metav1.Duration `json:"ackWait,omitempty"`

	// MaxDeliver is how often a message is delivered at most; -1 means without a limit.
	//
	// +kubebuilder:default=-1
	// +kubebuilder:validation:XValidation:rule="self == -1 || self > 0",message="use -1 or a positive number"
	// +optional
	MaxDeliver int32 `json:"maxDeliver,omitempty"`

	// ConnectionSecret is the name of a Secret that the operator writes, with the address of the
	// server and the names of the stream and the consumer.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ConnectionSecret string `json:"connectionSecret,omitempty"`
}

// ConsumerStatus is the observed state of a Consumer.
type ConsumerStatus struct {
	policy.RequestStatus `json:",inline"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Server is where the stream is.
	//
	// +optional
	Server *Server `json:"server,omitempty"`

	// Stream is the name of the stream in NATS.
	//
	// +optional
	Stream string `json:"stream,omitempty"`

	// Consumer is the name of the consumer in NATS.
	//
	// +optional
	Consumer string `json:"consumer,omitempty"`

	// Conditions are Ready, StreamReady, those of package external and, while Ready is not true,
	// Reconciling or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Consumer is a durable pull consumer of a Stream.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=consumers,categories=ctrlkit
// +kubebuilder:printcolumn:name="Stream",type=string,JSONPath=`.spec.stream`
// +kubebuilder:printcolumn:name="Consumer",type=string,JSONPath=`.status.consumer`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Consumer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConsumerSpec   `json:"spec"`
	Status ConsumerStatus `json:"status,omitempty"`
}

// ConsumerList is a list of Consumers.
//
// +kubebuilder:object:root=true
type ConsumerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Consumer `json:"items"`
}
