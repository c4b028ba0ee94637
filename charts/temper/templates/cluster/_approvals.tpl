{{/*
Who may approve. The field authorised is the field acted on: a promotion is authorised for its digest and never for a name the caller
chose. Roles without resourceNames cover every digest. The parameter is the list of ServiceAccounts that may approve, such as the one that
applies what was merged; without the list nothing passes.
*/}}
{{- define "temper.guard.approvals" -}}
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
    message: a person approves, or a ServiceAccount of another namespace that temper-approvers lists
    reason: Forbidden
  - expression: request.operation != 'CREATE' || object.spec.approvedBy.username == request.userInfo.username
    messageExpression: >-
      'spec.approvedBy.username must be the caller, "' + request.userInfo.username + '"'
    message: spec.approvedBy.username must be the caller
    reason: Forbidden
  # What a Git repository holds knows no uid of a cluster, so listed ServiceAccounts may leave theirs out.
  - expression: >-
      request.operation != 'CREATE' || (has(object.spec.approvedBy.uid) ?
        has(request.userInfo.uid) && object.spec.approvedBy.uid == request.userInfo.uid :
        !has(request.userInfo.uid) || request.userInfo.uid == '' || variables.isServiceAccount)
    message: spec.approvedBy.uid must be the uid of the caller, and absent where the API server knows none; `kubectl auth whoami` shows it
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
    message: deciding about a promotion takes the verb approve on emergenttools, for every tool or for this whole digest
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.isOperator || !has(variables.subject.trust) ||
      (authorizer.group('temper.dev').resource('agents').namespace(request.namespace)
        .name(variables.subject.trust.agent).check('approve').allowed() &&
      authorizer.group('temper.dev').resource('trustpolicies').namespace(request.namespace)
        .name(variables.subject.trust.policy).check('approve').allowed())
    message: deciding about the trust in an agent takes the verb approve on the agent and on its TrustPolicy
    reason: Forbidden
  - expression: >-
      request.operation != 'CREATE' || variables.isOperator || !has(variables.subject.call) ||
      authorizer.group('temper.dev').resource('agents').namespace(request.namespace)
        .name(variables.subject.call.agent).check('approve').allowed()
    message: deciding about a call takes the verb approve on the agent that makes it
    reason: Forbidden
  # An owner that goes away would take the answer along.
  - expression: request.operation != 'CREATE' || !has(object.metadata.ownerReferences)
    message: an Approval has no owner
    reason: Forbidden
  - expression: >-
      request.operation != 'UPDATE' || (object.spec == oldObject.spec && (
        variables.isCollector || variables.isOperator || (
          (has(object.metadata.ownerReferences) ? object.metadata.ownerReferences : []) ==
            (has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences : []) &&
          (has(object.metadata.finalizers) ? object.metadata.finalizers : []) ==
            (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : []))))
    message: an Approval is not changed and gets no owners or finalizers; take it back with another one, decision Revoke
    reason: Forbidden
  - expression: request.operation != 'DELETE' || variables.isCollector || variables.isOperator
    message: an answer is not deleted, a No least of all; take it back with an Approval of decision Revoke
    reason: Forbidden
{{- end }}

{{/*
Who took part in a tool does not approve it. Evaluated once for every EmergentTool of the namespace, so it holds for the one with the digest;
a tool that is not there yet cannot be looked at, so the operator checks again when it activates one.
*/}}
{{- define "temper.guard.contributors" -}}
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
    message: you took part in this tool; another person approves it
    reason: Forbidden
{{- end }}
