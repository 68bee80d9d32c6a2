// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package diagram draws workflows: as text, as SVG, for Graphviz (DOT) and for Mermaid. In a test,
// ctrlkittest.AttachDiagram adds the drawing to what is printed of a failure.
//
//	workflow := ctrlkit.Sequential(mgr.SyncService(), mgr.SyncPods())
//	diagram.Text(os.Stdout, ctrlkit.Describe(workflow))
//
// A drawing shows what is in the workflow, and with a [Recorder] also how every action ended in a
// run: which are done, which failed and why, what each waits for, and which were blocked by which.
//
// The same workflow with the same outcomes is drawn the same, byte by byte. Labels and error texts
// may contain anything; each format writes them so that they are text and nothing else.
package diagram
