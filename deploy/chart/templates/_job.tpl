{{/* What one run is, whether a CronJob starts it or Helm. */}}
{{- define "rebalancer.jobSpec" -}}
backoffLimit: {{ int .Values.backoffLimit }}
{{- with .Values.activeDeadlineSeconds }}
activeDeadlineSeconds: {{ int . }}
{{- end }}
{{- if not (kindIs "invalid" .Values.ttlSecondsAfterFinished) }}
ttlSecondsAfterFinished: {{ int .Values.ttlSecondsAfterFinished }}
{{- end }}
template:
  metadata:
    {{- include "rebalancer.podMetadata" (dict "root" .) | nindent 4 }}
  spec:
    {{- include "rebalancer.pod" (dict "root" . "args" (list "once") "serves" false "restartPolicy" "Never") | nindent 4 }}
{{- end -}}
