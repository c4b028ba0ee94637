{{/*
Approvers. The field that is authorised is the field that takes effect: a promotion is authorised for its digest and never for a name the caller
chose. Roles without resourceNames cover every digest. The parameter is the list of ServiceAccounts that may approve, such as the one that
applies what was merged; without the list nothing passes.
*/}}
{{- define "temper.admissionPolicy.approvals" -}}
failurePolicy: Fail
paramKind: {apiVersion: v1, kind: ConfigMap}
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [approvals]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: isServiceAccount
    expression: >-
      request.userInfo.username.startsWith('system:serviceaccount:') ||
      (has(request.userInfo.groups) && 'system:serviceaccounts' in request.userInfo.groups)
  - name: listed
    expression: "has(params.data) && 'serviceAccounts' in params.data ? params.data['serviceAccounts'].split('\\n') : []"
  - name: isListed
    expression: >-
      !variables.isOperator && request.userInfo.username in variables.listed &&
      !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')
  - name: takesBack
    expression: object != null && object.spec.decision == 'Revoke'
  - name: subject
    expression: "object != null ? object.spec.subject : oldObject.spec.subject"
validations:
  - expression: >-
      request.operation != 'CREATE' || !variables.isServiceAccount || variables.isListed || (variables.isOperator && variables.takesBack)
    messageExpression: >-
      'a person approves: "' + request.userInfo.username + '" is a ServiceAccount, and not one of another namespace that temper-approvers lists'
    message: only a user approves, or a ServiceAccount of another namespace that temper-approvers lists
    reason: Forbidden
  - expression: request.operation != 'CREATE' || object.spec.approvedBy.username == request.userInfo.username
    messageExpression: >-
      'spec.approvedBy.username must be the caller, "' + request.userInfo.username + '"'
    message: spec.approvedBy.username must be the caller
    reason: Forbidden
  # A manifest in Git cannot hold a uid of the cluster, so listed ServiceAccounts may omit theirs.
  - expression: >-
      request.operation != 'CREATE' || (has(object.spec.approvedBy.uid) ?
        has(request.userInfo.uid) && object.spec.approvedBy.uid == request.userInfo.uid :
        !has(request.userInfo.uid) || request.userInfo.uid == '' || variables.isServiceAccount)
    message: spec.approvedBy.uid must be the uid of the caller, and absent when the API server has none; `kubectl auth whoami` shows it
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || [has(variables.subject.promotion), has(variables.subject.trust), has(variables.subject.call)].filter(s, s).size() == 1
    message: spec.subject holds exactly one of promotion, trust and call
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.isOperator || !has(variables.subject.promotion) || (
        variables.subject.promotion.digest.matches('^sha256:[0-9a-f]{64}$') &&
        authorizer.group('temper.dev').resource('emergenttools').namespace(request.namespace)
          .name(variables.subject.promotion.digest).check('approve').allowed())
    message: a decision about a promotion requires the verb approve on emergenttools, for every tool or for this digest
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.isOperator || !has(variables.subject.trust) ||
      (authorizer.group('temper.dev').resource('agents').namespace(request.namespace)
        .name(variables.subject.trust.agent).check('approve').allowed() &&
      authorizer.group('temper.dev').resource('trustpolicies').namespace(request.namespace)
        .name(variables.subject.trust.policy).check('approve').allowed())
    message: a decision about an agent's trust requires the verb approve on the agent and on its TrustPolicy
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.isOperator || !has(variables.subject.call) ||
      authorizer.group('temper.dev').resource('agents').namespace(request.namespace)
        .name(variables.subject.call.agent).check('approve').allowed()
    message: a decision about a call requires the verb approve on the agent that makes it
    reason: Forbidden
  # Garbage collection of an owner would delete the decision.
  - expression: request.operation != 'CREATE' || !has(object.metadata.ownerReferences)
    message: an Approval must not have an owner
    reason: Forbidden
  - expression: >-
      request.operation != 'UPDATE' || (object.spec == oldObject.spec && (
        variables.isCollector || variables.isOperator || (
          (has(object.metadata.ownerReferences) ? object.metadata.ownerReferences : []) ==
            (has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences : []) &&
          (has(object.metadata.finalizers) ? object.metadata.finalizers : []) ==
            (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : []))))
    message: an Approval is immutable and gets no owners or finalizers; revoke it with another Approval of decision Revoke
    reason: Forbidden
  - expression: request.operation != 'DELETE' || variables.isCollector || variables.isOperator
    message: an Approval cannot be deleted; revoke it with another Approval of decision Revoke
    reason: Forbidden
{{- end }}

{{/*
A contributor to a tool must not approve it. Evaluated once for every EmergentTool of the namespace, so it holds for the one with the digest;
a tool that is not there yet cannot be looked at, so the operator checks again when it activates one.
*/}}
{{- define "temper.admissionPolicy.contributors" -}}
failurePolicy: Fail
paramKind: {apiVersion: temper.dev/v1alpha1, kind: EmergentTool}
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [temper.dev]
      apiVersions: ["*"]
      operations: [CREATE]
      resources: [approvals]
      scope: "*"
matchConditions:
  - name: promotes
    expression: object.spec.decision == 'Approve' && has(object.spec.subject.promotion)
validations:
  - expression: >-
      params.spec.digest != object.spec.subject.promotion.digest || !has(params.spec.contributors) ||
      !(request.userInfo.username in params.spec.contributors)
    message: you contributed to this tool; another user must approve it
    reason: Forbidden
{{- end }}
