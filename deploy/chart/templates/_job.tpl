{{/* What one run is, whether a CronJob starts it or Helm. */}}
{{- define "rebalancer.jobSpec" -}}
backoffLimit: {{ int .Values.backoffLimit }}
{{- $settings := fromJson (include "rebalancer.settings" .) }}
{{- $run := ceil (float64 (default 600 (get $settings "runDeadlineSeconds"))) }}
# A Job that waits for a lease that another holds must not keep the next one from starting for ever.
activeDeadlineSeconds: {{ int (default (addf $run 300) .Values.activeDeadlineSeconds) }}
{{- if not (kindIs "invalid" .Values.ttlSecondsAfterFinished) }}
ttlSecondsAfterFinished: {{ int .Values.ttlSecondsAfterFinished }}
{{- end }}
template:
  metadata:
    {{- include "rebalancer.podMetadata" (dict "root" .) | nindent 4 }}
  spec:
    {{- include "rebalancer.pod" (dict "root" . "args" (list "once") "serves" false "restartPolicy" "Never") | nindent 4 }}
{{- end -}}
