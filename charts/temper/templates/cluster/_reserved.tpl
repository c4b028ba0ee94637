{{/* What others trust by name: statuses and requests of Temper. */}}
{{- define "temper.admissionPolicy.reserved" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: ["*/status"]
      scope: "*"
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [approvalrequests]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: isStatus
    expression: has(request.subResource) && request.subResource == 'status'
validations:
  - expression: "!variables.isStatus || variables.isOperator"
    message: only the Temper operator writes the status
    reason: Forbidden
  - expression: variables.isStatus || variables.isOperator || (variables.isCollector && request.operation != 'CREATE')
    message: only the Temper operator creates and deletes requests; answer one with an Approval
    reason: Forbidden
{{- end }}

{{/* The label that protects a namespace. Status and finalize are writes of the same object, its labels included. */}}
{{- define "temper.admissionPolicy.namespaces" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector:
    matchExpressions: [{key: temper.dev/agents, operator: Exists}]
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [namespaces, namespaces/status, namespaces/finalize]
      scope: "*"
variables:
  - name: isPlatform
    expression: {{ include "temper.cel.isPlatform" . | quote }}
  - name: value
    expression: "has(object.metadata.labels) && 'temper.dev/agents' in object.metadata.labels ? object.metadata.labels['temper.dev/agents'] : ''"
  - name: oldValue
    expression: >-
      oldObject != null && has(oldObject.metadata.labels) && 'temper.dev/agents' in oldObject.metadata.labels ?
      oldObject.metadata.labels['temper.dev/agents'] : ''
validations:
  - expression: variables.value == variables.oldValue || variables.isPlatform
    message: changing the label temper.dev/agents requires the verb manage on admissionpolicies.temper.dev
    reason: Forbidden
{{- end }}

{{/* By the name in the request, so that other ConfigMaps of the cluster are not looked at. */}}
{{- define "temper.admissionPolicy.config-maps" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [configmaps]
      resourceNames: [temper-endpoints, temper-approvers]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: isPlatform
    expression: {{ include "temper.cel.isPlatform" . | quote }}
validations:
  - expression: request.name != 'temper-endpoints' || variables.isOperator || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-endpoints holds the address that agents send their tokens to; only the Temper operator writes it
    reason: Forbidden
  - expression: request.name != 'temper-approvers' || variables.isPlatform || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-approvers lists the ServiceAccounts that may approve; changing it requires the verb manage on admissionpolicies.temper.dev
    reason: Forbidden
{{- end }}

{{/* A delete of a collection has no name in its request, so the label of the operator selects temper-endpoints. */}}
{{- define "temper.admissionPolicy.config-map-collections" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector:
    matchLabels: {app.kubernetes.io/managed-by: temper-operator}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [DELETE]
      resources: [configmaps]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
validations:
  - expression: variables.isOperator || variables.isCollector
    message: the Temper operator owns this ConfigMap; delete the others by name or by label
    reason: Forbidden
{{- end }}
