{{/* Callers, as CEL sees them. Each definition is one CEL expression. */}}

{{/* The operators whose installations these guards serve: this one and those of `guards.operatorNamespaces`. */}}
{{- define "temper.cel.isOperator" -}}
{{- $names := list -}}
{{- range (prepend .Values.guards.operatorNamespaces .Release.Namespace | uniq) -}}
{{- $names = append $names (printf "'system:serviceaccount:%s:temper-operator'" .) -}}
{{- end -}}
request.userInfo.username in [{{ join ", " $names }}]
{{- end }}

{{/* Nodes, the control plane, the controllers of kube-system, and what the platform lists. A namespace of agents is useless without them. */}}
{{- define "temper.cel.isSystem" -}}
{{- $listed := list "'system:apiserver'" "'system:kube-controller-manager'" "'system:kube-scheduler'" -}}
{{- range .Values.guards.systemAccounts }}{{ $listed = append $listed (printf "'%s'" .) }}{{ end -}}
request.userInfo.username in [{{ join ", " $listed }}] ||
request.userInfo.username.startsWith('system:serviceaccount:kube-system:') ||
(request.userInfo.username.startsWith('system:node:') && has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)
{{- end }}

{{/* What empties a namespace and collects what lost its owner. */}}
{{- define "temper.cel.isCollector" -}}
request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector', 'system:serviceaccount:kube-system:namespace-controller']
{{- end }}

{{/* The platform: who may manage the guards themselves. A virtual verb; cluster administrators have it. */}}
{{- define "temper.cel.isPlatform" -}}
authorizer.group('temper.dev').resource('guards').check('manage').allowed()
{{- end }}
