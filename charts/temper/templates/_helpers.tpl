{{- define "temper.labels" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: temper
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Selector labels of a component's pods; takes root and component. */}}
{{- define "temper.selector" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of pods. No version: a changed label would replace pods whose template is unchanged. */}}
{{- define "temper.podLabels" -}}
{{ include "temper.selector" . }}
app.kubernetes.io/part-of: temper
{{- with .root.Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of a component's objects. */}}
{{- define "temper.componentLabels" -}}
{{ include "temper.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Takes root and image. A digest takes precedence over a tag; without either the chart's version. */}}
{{- define "temper.image" -}}
{{- with .root.Values.global.imageRegistry | default .image.registry }}{{ . }}/{{ end }}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}
{{- else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Memory and storage: limit equals request. Processor time may use idle capacity up to cpuLimit. */}}
{{- define "temper.resources" -}}
{{- range list "requests" "limits" }}
{{ . }}:
  cpu: {{ if eq . "limits" }}{{ $.cpuLimit | default $.cpu }}{{ else }}{{ $.cpu }}{{ end }}
  memory: {{ $.memory }}
  ephemeral-storage: {{ $.ephemeralStorage }}
{{- end }}
{{- end }}

{{/* Nine tenths of a memory quantity in bytes: the Go runtime frees memory before the kernel kills the server. */}}
{{- define "temper.goMemoryLimit" -}}
{{- $factors := dict "" 1 "k" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 }}
{{- $amount := regexFind "^[0-9]+" . }}
{{- div (mul (int64 $amount) (int64 (get $factors (trimPrefix $amount .))) 9) 10 }}
{{- end }}

{{/* Refuses another number of NATS servers than the running one: nats-server deletes streams of a store that changes its cluster. */}}
{{- define "temper.natsReplicasAreKept" -}}
{{- $running := lookup "apps/v1" "StatefulSet" .Release.Namespace "temper-nats" }}
{{- $count := dig "spec" "replicas" 0 $running | int }}
{{- if and (gt $count 0) (ne $count (int .Values.nats.replicas)) }}
{{- fail (printf "nats.replicas is %d, but temper-nats has %d servers. A server that joins or leaves a cluster loses its streams: keep nats.replicas=%d, or replace the store as docs/reference/bus.md describes" (int .Values.nats.replicas) $count $count) }}
{{- end }}
{{- end }}

{{/* Pod spec that all components share; takes root, component, account and uid. With spreadNodes, no node has two pods more than another. */}}
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
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
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
    whenUnsatisfiable: {{ if and $.spreadNodes (eq . "kubernetes.io/hostname") }}DoNotSchedule{{ else }}ScheduleAnyway{{ end }}
    labelSelector:
      matchLabels:
        {{- include "temper.selector" $ | nindent 8 }}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
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

{{/* Probes of a role, on the health port. */}}
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

{{/* A headless Service that lists each pod of a component, ready or not, for metrics scraping; takes metricsPort and metricsTarget too. */}}
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
    - {name: metrics, port: {{ .metricsPort | default 9090 }}, targetPort: {{ .metricsTarget | default "health" }}}
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

{{/* The Secret with the nkey seeds of the NATS users: the operator's, or the platform team's. */}}
{{- define "temper.natsUsersSecret" -}}
{{- if .Values.nats.enabled }}temper-nats-users{{ else }}{{ required "nats.existingSecret is needed when nats.enabled is false" .Values.nats.existingSecret }}{{ end }}
{{- end }}

{{/* Beside everything that NATS keeps: the operator deletes only data of agents of its release. */}}
{{- define "temper.natsRelease" -}}
{{ .Release.Namespace }}/{{ .Release.Name }}
{{- end }}

{{/* A map of whole numbers as JSON. Helm reads numbers of values files as floats, and writes large ones with an exponent. */}}
{{- define "temper.integers" -}}
{{- $integers := dict }}
{{- range $name, $value := . }}{{ $_ := set $integers $name (int64 $value) }}{{ end }}
{{- toJson $integers }}
{{- end }}
