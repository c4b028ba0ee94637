{{/* Callers, as CEL expressions. */}}

{{/* The operators that these admission policies permit: this release's and those of `admissionPolicies.operatorNamespaces`. */}}
{{- define "temper.cel.isOperator" -}}
{{- $names := list -}}
{{- range (prepend .Values.admissionPolicies.operatorNamespaces .Release.Namespace | uniq) -}}
{{- $names = append $names (printf "'system:serviceaccount:%s:temper-operator'" .) -}}
{{- end -}}
request.userInfo.username in [{{ join ", " $names }}]
{{- end }}

{{/* Nodes, the control plane, the controllers of kube-system, and accounts that the platform team lists. A namespace with agents does not work without them. */}}
{{- define "temper.cel.isSystem" -}}
{{- $listed := list "'system:apiserver'" "'system:kube-controller-manager'" "'system:kube-scheduler'" -}}
{{- range .Values.admissionPolicies.systemAccounts }}{{ $listed = append $listed (printf "'%s'" .) }}{{ end -}}
request.userInfo.username in [{{ join ", " $listed }}] ||
request.userInfo.username.startsWith('system:serviceaccount:kube-system:') ||
(request.userInfo.username.startsWith('system:node:') && has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)
{{- end }}

{{/* Controllers that empty a namespace and collect objects without an owner. */}}
{{- define "temper.cel.isCollector" -}}
request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector', 'system:serviceaccount:kube-system:namespace-controller']
{{- end }}

{{/* The platform team, which may manage the admission policies: a virtual verb, which cluster administrators have. */}}
{{- define "temper.cel.isPlatform" -}}
authorizer.group('temper.dev').resource('admissionpolicies').check('manage').allowed()
{{- end }}
