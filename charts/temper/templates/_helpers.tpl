{{- define "temper.labels" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: temper
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* What selects the pods of a component; takes root and component. */}}
{{- define "temper.selector" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Of pods. No version: a label that changes would make new pods of old templates. */}}
{{- define "temper.podLabels" -}}
{{ include "temper.selector" . }}
app.kubernetes.io/part-of: temper
{{- end }}

{{/* Of the objects of a component. */}}
{{- define "temper.componentLabels" -}}
{{ include "temper.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Takes root and image. A digest outranks a tag; without either the version of the chart. */}}
{{- define "temper.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}
{{- else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Memory and storage are kept as they are promised; processor time may go up to cpuLimit while nobody else wants it. */}}
{{- define "temper.resources" -}}
{{- range list "requests" "limits" }}
{{ . }}:
  cpu: {{ if eq . "limits" }}{{ $.cpuLimit | default $.cpu }}{{ else }}{{ $.cpu }}{{ end }}
  memory: {{ $.memory }}
  ephemeral-storage: {{ $.ephemeralStorage }}
{{- end }}
{{- end }}

{{/* What the pods of all components have in common; takes root, component, account and the uid. */}}
{{- define "temper.podSpec" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .user }}
  fsGroup: {{ .user }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "temper.selector" $ | nindent 8 }}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "temper.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Probes of a role of ours, on the health port. */}}
{{- define "temper.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end }}

{{/* Names each pod of a component, ready or not, to whoever scrapes its metrics. */}}
{{- define "temper.metricsService" -}}
---
apiVersion: v1
kind: Service
metadata:
  name: temper-{{ .component }}-metrics
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "temper.selector" . | nindent 4 }}
  ports:
    - {name: metrics, port: 9090, targetPort: health}
{{- end }}

{{- define "temper.disruptionBudget" -}}
{{- if gt (int .replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: temper-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "temper.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "temper.natsUrl" -}}
{{- if .Values.nats.enabled }}tls://temper-nats.{{ .Release.Namespace }}.svc:4222{{ else }}{{ required "nats.url is needed when nats.enabled is false" .Values.nats.url }}{{ end }}
{{- end }}

{{/* The Secret with the seeds of the users of NATS: the operator's own, or the platform's. */}}
{{- define "temper.natsUsersSecret" -}}
{{- if .Values.nats.enabled }}temper-nats-users{{ else }}{{ required "nats.existingSecret is needed when nats.enabled is false" .Values.nats.existingSecret }}{{ end }}
{{- end }}
