{{/* Writing an Agent requires the virtual verb `use` on the TrustPolicy it names, so authors of prompts do not choose the rules. */}}
{{- define "temper.admissionPolicy.use-policy" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [agents]
      scope: "*"
validations:
  # A change of labels or owners only permits nothing.
  - expression: >-
      (oldObject != null && object.spec == oldObject.spec) ||
      authorizer.group('temper.dev').resource('trustpolicies').namespace(request.namespace)
        .name(object.spec.trustPolicyRef.name).check('use').allowed()
    messageExpression: >-
      'writing an Agent under TrustPolicy "' + object.spec.trustPolicyRef.name + '" takes the verb use on it; ask who owns the policy, or name another'
    message: writing an Agent requires the verb use on the TrustPolicy it names
    reason: Forbidden
{{- end }}

{{/* An agent with the label is charged to its parent, so a user cannot write it: another tree would pay. Other agents are not looked at. */}}
{{- define "temper.admissionPolicy.child-agents" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector:
    matchExpressions: [{key: temper.dev/parent-agent-uid, operator: Exists}]
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [agents]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: parent
    expression: "has(object.metadata.labels) && 'temper.dev/parent-agent-uid' in object.metadata.labels ? object.metadata.labels['temper.dev/parent-agent-uid'] : ''"
  - name: oldParent
    expression: >-
      oldObject != null && has(oldObject.metadata.labels) && 'temper.dev/parent-agent-uid' in oldObject.metadata.labels ?
      oldObject.metadata.labels['temper.dev/parent-agent-uid'] : ''
validations:
  - expression: variables.isOperator || variables.parent == variables.oldParent
    message: the label temper.dev/parent-agent-uid says which agent is charged for a child; only the Temper operator sets, changes and removes it
    reason: Forbidden
{{- end }}

{{/* The kill switch: the right to stop every agent of a policy does not include the right to start them again. */}}
{{- define "temper.admissionPolicy.resume" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [UPDATE, DELETE]
      resources: [trustpolicies]
      scope: "*"
variables:
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: wasSuspended
    expression: has(oldObject.spec.suspend) && oldObject.spec.suspend
  - name: isSuspended
    expression: object != null && has(object.spec.suspend) && object.spec.suspend
validations:
  - expression: >-
      !variables.wasSuspended || variables.isSuspended || (request.operation == 'DELETE' && variables.isCollector) ||
      authorizer.group('temper.dev').resource('trustpolicies').namespace(request.namespace)
        .name(oldObject.metadata.name).check('resume').allowed()
    message: the kill switch of this TrustPolicy is on; clearing it, or deleting the policy, requires the verb resume on it
    reason: Forbidden
{{- end }}
