{{/* Reserved to the operator or the platform team in every namespace: labels, statuses, and objects that others trust by name. */}}
{{- define "temper.admissionPolicy.reserved" -}}
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
    # By the object's own name and not by resourceNames: a delete of a collection has no name.
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
  # Skips most pods, namespaces and config maps of the cluster.
  - name: ours
    expression: >-
      request.resource.group == 'temper.dev' ||
      [object, oldObject].exists(o, o != null && (
        (has(o.metadata.labels) && o.metadata.labels.exists(l, l in ['temper.dev/agents', 'temper.dev/agent-pod', 'temper.dev/agent-uid'])) ||
        (request.resource.resource == 'configmaps' && has(o.metadata.name) && o.metadata.name in ['temper-endpoints', 'temper-approvers'])
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
    message: only the Temper operator sets the labels temper.dev/agent-pod and temper.dev/agent-uid; create an Agent instead of a pod
    reason: Forbidden
  - expression: request.resource.resource != 'pods' || !has(request.subResource) || request.subResource == ''
    message: the pod of an agent cannot be resized or given containers; change the Agent instead
    reason: Forbidden
  # A compromised operator cannot mount a tenant's Secret into a pod. Dry runs are exempt: the operator probes before the account exists.
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      (has(request.dryRun) && request.dryRun) || (
        object.spec.serviceAccountName == 'temper-agent' && has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken
      )
    message: the pod of an agent must run as temper-agent, without a token for the API server
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      !has(object.spec.volumes) || object.spec.volumes.all(v,
        has(v.emptyDir) || has(v.ephemeral) || has(v.configMap) ||
        (has(v.projected) && has(v.projected.sources) && v.projected.sources.all(s,
          (has(s.configMap) && s.configMap.name == 'temper-endpoints') ||
          (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) &&
            s.serviceAccountToken.audience in ['temper-gateway', 'temper-egress'] && s.serviceAccountToken.expirationSeconds <= 3600))))
    message: the pod of an agent may mount only empty volumes, ConfigMaps and its tokens for the gateway and egress
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'pods' || request.operation != 'CREATE' || !('temper.dev/agent-pod' in variables.labels) ||
      (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).all(c,
        !has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || has(e.valueFrom.fieldRef) || has(e.valueFrom.resourceFieldRef))))
    message: the environment of an agent's pod must not refer to Secrets or ConfigMaps
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'namespaces' ||
      ('temper.dev/agents' in variables.labels ? variables.labels['temper.dev/agents'] : '') ==
        ('temper.dev/agents' in variables.oldLabels ? variables.oldLabels['temper.dev/agents'] : '') ||
      variables.isPlatform
    message: changing the label temper.dev/agents requires the verb manage on admissionpolicies.temper.dev
    reason: Forbidden
  - expression: variables.configMap != 'temper-endpoints' || variables.isOperator || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-endpoints holds the address that agents send their tokens to; only the Temper operator writes it
    reason: Forbidden
  - expression: >-
      variables.configMap != 'temper-approvers' || variables.isPlatform || (request.operation == 'DELETE' && variables.isCollector)
    message: temper-approvers lists the ServiceAccounts that may approve; changing it requires the verb manage on admissionpolicies.temper.dev
    reason: Forbidden
  - expression: "!variables.isStatus || variables.isOperator"
    message: only the Temper operator writes the status
    reason: Forbidden
  - expression: >-
      request.resource.resource != 'approvalrequests' || variables.isStatus || variables.isOperator ||
      (variables.isCollector && request.operation != 'CREATE')
    message: only the Temper operator creates and deletes requests; answer one with an Approval
    reason: Forbidden
{{- end }}
