// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import "encoding/json"

// The types of the protocol that the server uses, with the names that the specification gives them.
type (
	// position counts lines and characters from 0. The encoding of the session says what a
	// character is.
	position struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}
	span struct {
		Start position `json:"start"`
		End   position `json:"end"`
	}
	location struct {
		URI   string `json:"uri"`
		Range span   `json:"range"`
	}
	textEdit struct {
		Range   span   `json:"range"`
		NewText string `json:"newText"`
	}
	workspaceEdit struct {
		Changes         map[string][]textEdit `json:"changes,omitempty"`
		DocumentChanges []any                 `json:"documentChanges,omitempty"`
	}
	// createFile and textDocumentEdit are elements of DocumentChanges.
	createFile struct {
		Kind string `json:"kind"`
		URI  string `json:"uri"`
	}
	textDocumentEdit struct {
		TextDocument versionedDocument `json:"textDocument"`
		Edits        []textEdit        `json:"edits"`
	}
	// versionedDocument has no version for a file that the editor has not opened.
	versionedDocument struct {
		URI     string `json:"uri"`
		Version *int   `json:"version"`
	}
	documentID struct {
		URI string `json:"uri"`
	}
	// documentParams are the parameters of all requests about a place in a document.
	documentParams struct {
		TextDocument documentID `json:"textDocument"`
		Position     position   `json:"position"`
	}

	initializeParams struct {
		Capabilities struct {
			General struct {
				PositionEncodings []string `json:"positionEncodings"`
			} `json:"general"`
			Workspace struct {
				DidChangeWatchedFiles struct {
					DynamicRegistration bool `json:"dynamicRegistration"`
				} `json:"didChangeWatchedFiles"`
			} `json:"workspace"`
		} `json:"capabilities"`
	}
	openParams struct {
		TextDocument struct {
			URI     string `json:"uri"`
			Version int    `json:"version"`
			Text    string `json:"text"`
		} `json:"textDocument"`
	}
	changeParams struct {
		TextDocument struct {
			URI     string `json:"uri"`
			Version int    `json:"version"`
		} `json:"textDocument"`
		ContentChanges []contentChange `json:"contentChanges"`
	}
	// contentChange replaces a range, or all if there is none.
	contentChange struct {
		Range *span  `json:"range"`
		Text  string `json:"text"`
	}
	watchedFilesParams struct {
		Changes []documentID `json:"changes"`
	}

	diagnostic struct {
		Range              span                 `json:"range"`
		Severity           int                  `json:"severity"`
		Code               string               `json:"code,omitempty"`
		Source             string               `json:"source,omitempty"`
		Message            string               `json:"message"`
		RelatedInformation []relatedInformation `json:"relatedInformation,omitempty"`
		Tags               []int                `json:"tags,omitempty"`
	}
	relatedInformation struct {
		Location location `json:"location"`
		Message  string   `json:"message"`
	}
	diagnosticsParams struct {
		URI         string       `json:"uri"`
		Version     *int         `json:"version,omitempty"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}

	documentSymbol struct {
		Name           string           `json:"name"`
		Detail         string           `json:"detail,omitempty"`
		Kind           int              `json:"kind"`
		Range          span             `json:"range"`
		SelectionRange span             `json:"selectionRange"`
		Children       []documentSymbol `json:"children,omitempty"`
	}
	markup struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	hover struct {
		Contents markup `json:"contents"`
		Range    span   `json:"range"`
	}
	completionItem struct {
		Label         string    `json:"label"`
		Kind          int       `json:"kind"`
		Detail        string    `json:"detail,omitempty"`
		Documentation string    `json:"documentation,omitempty"`
		SortText      string    `json:"sortText,omitempty"`
		TextEdit      *textEdit `json:"textEdit,omitempty"`
	}
	completionList struct {
		IsIncomplete bool             `json:"isIncomplete"`
		Items        []completionItem `json:"items"`
	}
	referenceParams struct {
		documentParams
		Context struct {
			IncludeDeclaration bool `json:"includeDeclaration"`
		} `json:"context"`
	}
	renameParams struct {
		documentParams
		NewName string `json:"newName"`
	}
	codeActionParams struct {
		TextDocument documentID `json:"textDocument"`
		Range        span       `json:"range"`
	}
	codeAction struct {
		Title       string        `json:"title"`
		Kind        string        `json:"kind"`
		Diagnostics []diagnostic  `json:"diagnostics,omitempty"`
		IsPreferred bool          `json:"isPreferred,omitempty"`
		Edit        workspaceEdit `json:"edit"`
	}
	commandParams struct {
		Command   string            `json:"command"`
		Arguments []json.RawMessage `json:"arguments"`
	}
)

// Values of the protocol's enumerations.
const (
	severityError, severityWarning, severityInformation = 1, 2, 3

	tagUnnecessary = 1

	symbolNamespace, symbolClass, symbolMethod, symbolField, symbolVariable = 3, 5, 6, 8, 13

	itemMethod, itemField, itemVariable, itemClass, itemModule, itemKeyword, itemEnumMember = 2, 5, 6, 7, 9, 14, 20
)
