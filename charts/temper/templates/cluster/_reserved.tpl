{{/* What belongs to the operator or to the platform wherever it is: labels, statuses, and the objects others trust by their name. */}}
{{- define "temper.guard.reserved" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector: {}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/ephemeralcontainers, pods/resize]
      scope: "*"
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [namespaces]
      scope: "*"
    # By the object's own name and not by resourceNames: the deletion of a collection names nothing.
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [configmaps]
      scope: "*"
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
matchConditions:
  # Most pods, namespaces and config maps of a cluster are none of our business.
  - name: ours
    expression: >-
      request.resource.group == 'temper.dev' ||
      [object, oldObject].exists(o, o != null && (
        (has(o.metadata.labels) && o.metadata.labels.exists(l, l in ['temper.dev/agents', 'temper.dev/agent-pod', 'temper.dev/agent-uid'])) ||
        (request.resource.resource == 'configmaps' && has(o.metadata.name) && o.metadata.name in ['temper-doors', 'temper-approvers'])
      ))
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: isPlatform
    expression: {{ include "temper.cel.isPlatform" . | quote }}
  - name: isStatus
    expression: request.resource.group == 'temper.dev' && has(request.subResource) && request.subResource == 'status'
  - name: labels
    expression: "object != null && has(object.metadata.labels) ? object.metadata.labels : {}"
  - name: oldLabels
    expression: "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"
  - name: configMap
    expression: "request.resource.resource != 'configmaps' ? '' : object != null ? object.metadata.name : oldObject.metadata.name"
validations:
  - expression: >-
      request.resource.resource != 'pods' || variables.isOperator ||
      ['temper.dev/agent-pod', 'temper.dev/agent-uid'].all(l,
        (l in variables.labels) == (l in variables.oldLabels) && (!(l in variables.labels) || variables.labels[l] == variables.oldLabels[l]))
    message: the labels temper.dev/agent-pod and temper.dev/agent-uid are the Temper operator's alone; make an Agent instead of a pod
    reason: Forbidden
  - expression: request.resource.resource != 'pods' || !has(request.subResource) || request.subResource == ''
    message: nothing is added to the pod of an agent and its size is not changed; change the Agent instead
    reason: Forbidden
  # Even a stolen operator mounts no Secret of a tenant into a pod. A dry run stores nothing; the operator's comes before the account exists.
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      (has(request.dryRun) && request.dryRun) || (
        object.spec.serviceAccountName == 'temper-agent' && has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken
      )
    message: the pod of an agent runs as temper-agent without the API server's token
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      !has(object.spec.volumes) || object.spec.volumes.all(v,
        has(v.emptyDir) || has(v.ephemeral) || has(v.configMap) ||
        (has(v.projected) && has(v.projected.sources) && v.projected.sources.all(s,
          (has(s.configMap) && s.configMap.name == 'temper-doors') ||
          (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) &&
            s.serviceAccountToken.audience in ['temper-gateway', 'temper-egress'] && s.serviceAccountToken.expirationSeconds <= 3600))))
    message: the pod of an agent mounts scratch space, ConfigMaps and its tokens for the gateway and egress, nothing else
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).all(c,
        !has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || has(e.valueFrom.fieldRef) || has(e.valueFrom.resourceFieldRef))))
    message: the environment of an agent's pod takes nothing from Secrets and ConfigMaps
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'namespaces' ||
      ('temper.dev/agents' in variables.labels ? variables.labels['temper.dev/agents'] : '') ==
        ('temper.dev/agents' in variables.oldLabels ? variables.oldLabels['temper.dev/agents'] : '') ||
      variables.isPlatform
    message: the label temper.dev/agents is the platform's; it takes the verb manage on guards.temper.dev
    reason: Forbidden
  - expression: variables.configMap != 'temper-doors' || variables.isOperator || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-doors says where agents send their tokens; only the Temper operator writes it
    reason: Forbidden
  - expression: >-
      variables.configMap != 'temper-approvers' || variables.isPlatform || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-approvers lists who may approve without being a person; it takes the verb manage on guards.temper.dev
    reason: Forbidden
  - expression: "!variables.isStatus || variables.isOperator"
    message: status is the Temper operator's alone
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'approvalrequests' || variables.isStatus || variables.isOperator ||
      (variables.isCollector && request.operation != 'CREATE')
    message: requests are made and removed by the Temper operator; answer one with an Approval
    reason: Forbidden
{{- end }}
