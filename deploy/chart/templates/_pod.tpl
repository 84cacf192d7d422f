{{/* The pod that Deployment, CronJob and Job have in common. Called with the root, the arguments and whether it serves. */}}

{{- define "rebalancer.podMetadata" -}}
labels:
  {{- include "rebalancer.selectorLabels" .root | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := default dict .root.Values.podAnnotations }}
{{- if .root.Values.restartOnPolicyChange }}
{{- $annotations = merge (dict "checksum/policy" (include "rebalancer.policy" .root | sha256sum)) $annotations }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rebalancer.pod" -}}
{{- $values := .root.Values -}}
{{- $mounted := eq (include "rebalancer.policySource" .root) "configMap" -}}
serviceAccountName: {{ include "rebalancer.serviceAccountName" .root }}
{{- if not (kindIs "invalid" $values.automountServiceAccountToken) }}
automountServiceAccountToken: {{ $values.automountServiceAccountToken }}
{{- end }}
# A Service called rebalancer would make Kubernetes set REBALANCER_ variables of its own.
enableServiceLinks: false
{{- if .restartPolicy }}
restartPolicy: {{ .restartPolicy }}
{{- end }}
{{- with $values.terminationGracePeriodSeconds }}
terminationGracePeriodSeconds: {{ int . }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- if not (kindIs "invalid" $values.hostUsers) }}
hostUsers: {{ $values.hostUsers }}
{{- end }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.affinity }}
affinity:
  {{- toYaml $values.affinity | nindent 2 }}
{{- else if and .serves (gt (int $values.replicas) 1) }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "rebalancer.selectorLabels" .root | nindent 14 }}
{{- end }}
{{- if $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
{{- else if and .serves (gt (int $values.replicas) 1) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "rebalancer.selectorLabels" .root | nindent 8 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .root.Chart.Name }}
    image: {{ include "rebalancer.image" .root | quote }}
    {{- with $values.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    {{- if and $values.command (ne (base (first $values.command)) "descheduler") }}
    command:
      {{- toYaml $values.command | nindent 6 }}
    {{- end }}
    args:
      {{- toYaml .args | nindent 6 }}
    env:
      {{- include "rebalancer.env" .root | trim | nindent 6 }}
    {{- with $values.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if .serves }}
    ports:
      - name: http
        containerPort: {{ include "rebalancer.port" .root }}
        protocol: TCP
    {{- range $name, $path := dict "startupProbe" "/healthz" "livenessProbe" "/healthz" "readinessProbe" "/readyz" }}
    {{- with get $values $name }}
    {{ $name }}:
      httpGet:
        path: {{ $path }}
        port: http
      {{- toYaml (omit . "httpGet") | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- end }}
    {{- with $values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if or $mounted $values.extraServiceAccountVolumeMounts $values.extraVolumeMounts }}
    volumeMounts:
      {{- if $mounted }}
      # The directory, not the file: only a directory follows changes of its ConfigMap.
      - name: policy
        mountPath: {{ dir (include "rebalancer.policyFile" .root) }}
        readOnly: true
      {{- end }}
      {{- with $values.extraServiceAccountVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- end }}
{{- if or $mounted $values.extraServiceAccountVolumes $values.extraVolumes }}
volumes:
  {{- if $mounted }}
  - name: policy
    configMap:
      name: {{ include "rebalancer.fullname" .root }}
  {{- end }}
  {{- with $values.extraServiceAccountVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}
