{{/* What was accepted and does something else than it did in the descheduler's chart, a line each. */}}
{{- define "rebalancer.warnings" -}}
{{- $options := default dict .Values.cmdOptions -}}
{{- $settings := fromJson (include "rebalancer.settings" .) -}}
{{- if .Values.foreign }}
- The values are those of another chart (--reuse-values). What they do not name is as this chart has it; kind stays {{ .Values.kind }}{{ if ne .Values.kind "Deployment" }}, and only kind=Deployment reacts to changes{{ end }}.
{{- end }}
{{- if and (eq (include "rebalancer.policySource" .) "configMap") (not .Values.deschedulerPolicy) }}
- deschedulerPolicy is empty: the ConfigMap {{ include "rebalancer.fullname" . }} has to exist, with the policy under the key policy.yaml.
{{- end }}
{{- if include "rebalancer.foreignImage" . }}
- image.repository {{ .Values.image.repository }} is the descheduler's. {{ include "rebalancer.image" . }} is used; if you mirror images, set image.repository and image.tag to your copy.
{{- end }}
{{- if and .Values.command (eq (base (first .Values.command)) "descheduler") }}
- command is the descheduler's and was left out.
{{- end }}
{{- if .Values.ports }}
- ports is not used: probes, metrics and status are plain HTTP on port {{ include "rebalancer.port" . }} (settings.listenPort).
{{- end }}
{{- if hasKey (default dict .Values.livenessProbe) "httpGet" }}
- livenessProbe.httpGet was replaced: /healthz by HTTP on port {{ include "rebalancer.port" . }}. Your times were kept.
{{- end }}
{{- if ne (default "batch/v1" .Values.cronJobApiVersion) "batch/v1" }}
- cronJobApiVersion {{ .Values.cronJobApiVersion }} is not used: CronJobs are batch/v1.
{{- end }}
{{- if (.Values.podSecurityPolicy).create }}
- podSecurityPolicy.create is not used: Kubernetes has no PodSecurityPolicy any more. The pods meet the restricted Pod Security Standard.
{{- end }}
{{- if and .Values.serviceMonitor.enabled (or .Values.serviceMonitor.insecureSkipVerify .Values.serviceMonitor.serverName) }}
- serviceMonitor.insecureSkipVerify and serverName are not used: metrics are plain HTTP.
{{- end }}
{{- if not (has (default "leases" (.Values.leaderElection).resourceLock) (list "leases")) }}
- leaderElection.resourceLock {{ .Values.leaderElection.resourceLock }} is not used: the lock is a Lease.
{{- end }}
{{- if and (ne .Values.kind "CronJob") (or .Values.suspend .Values.timeZone) }}
- suspend and timeZone are about the CronJob; this is a {{ .Values.kind }}.
{{- end }}
{{- if and (ne .Values.kind "Deployment") (or .Values.serviceMonitor.enabled .Values.service.enabled .Values.podDisruptionBudget.enabled) }}
- service, serviceMonitor and podDisruptionBudget are about the Deployment; this is a {{ .Values.kind }}.
{{- end }}
{{- if eq (regexFind "^0[a-z]*$" (toString .Values.deschedulingInterval)) (toString .Values.deschedulingInterval) }}
- deschedulingInterval {{ .Values.deschedulingInterval }} is not used: for a single run choose kind Job.
{{- end }}
{{- if eq (include "rebalancer.policySource" .) "configMap" }}
{{- if and (hasKey (default dict .Values.deschedulerPolicy) "strategies") (not (hasSuffix "/v1alpha1" .Values.deschedulerPolicyAPIVersion)) }}
- deschedulerPolicy.strategies is the form of descheduler/v1alpha1 and is read as such; the default profiles of this chart are left out.
{{- end }}
{{- if include "rebalancer.policyIsOld" . }}
- The policy is descheduler/v1alpha1. It is converted at each start; `rebalancer policy convert` writes it in the present form.
{{- end }}
{{- if hasKey (default dict .Values.deschedulerPolicy) "tracing" }}
- deschedulerPolicy.tracing never was a field of the policy: set settings.otlpEndpoint.
{{- end }}
{{- else if .Values.cmdOptions }}
{{- if or (get $options "node-selector") (get $options "max-pods-to-evict-per-node") }}
- cmdOptions.node-selector and max-pods-to-evict-per-node are not used where the policy is not deschedulerPolicy: write them into your policy.
{{- end }}
{{- end }}
{{- $answers := fromYaml (include "rebalancer.flagAnswers" .) }}
{{- range $flag, $value := $options }}
{{- with get $answers $flag }}
- cmdOptions.{{ $flag }} is not used: {{ . }}.
{{- end }}
{{- end }}
{{- if and (get $options "feature-gates") (not (contains "EvictionsInBackground" (get $options "feature-gates"))) }}
- cmdOptions.feature-gates {{ get $options "feature-gates" }} is not used: the only gate with a setting is EvictionsInBackground.
{{- end }}
{{- if and (include "rebalancer.flag" (dict "options" $options "name" "evict-local-storage-pods")) (not (include "rebalancer.policyIsOld" .)) }}
- cmdOptions.evict-local-storage-pods is not used with descheduler/v1alpha2: disable the protection PodsWithLocalStorage in the policy.
{{- end }}
{{- if and (eq (toString (get $settings "leaderElection")) "false") (eq .Values.kind "Deployment") }}
- Leader election is off: a descheduler, or a second release, would evict beside this one.
{{- end }}
{{- end -}}

{{/* Flags of the descheduler without a setting, and what to do instead. */}}
{{- define "rebalancer.flagAnswers" -}}
{{- $tls := "there is no TLS endpoint, metrics are plain HTTP; use a mesh or settings.metricsNeedToken" -}}
{{- $logs := "log lines go to standard output at once, as JSON or for people (settings.logFormat)" -}}
{{- $traces := "traces go by OTLP over HTTP to settings.otlpEndpoint; the variables OTEL_... of OpenTelemetry apply (extraEnv)" -}}
{{- $answers := dict "client-connection-qps" "requests are few; evictions are limited by settings.evictionsPerMinute" "client-connection-burst" "requests are few; evictions are limited by settings.evictionsPerMinute" "disable-metrics" "metrics cost nothing unless they are read" "secure-port" "the port is settings.listenPort, plain HTTP" "enable-http2" "HTTP/1.1 is served" "leader-elect-resource-lock" "the lock is a Lease" -}}
{{- range list "cert-dir" "tls-cert-file" "tls-private-key-file" "tls-cipher-suites" "tls-curve-preferences" "tls-min-version" "tls-sni-cert-key" "permit-port-sharing" "permit-address-sharing" "disable-http2-serving" "http2-max-streams-per-connection" -}}
{{- $_ := set $answers . $tls -}}
{{- end -}}
{{- range list "vmodule" "log-flush-frequency" "log-json-split-stream" "log-json-info-buffer-size" "log-text-split-stream" "log-text-info-buffer-size" "logtostderr" "alsologtostderr" "stderrthreshold" -}}
{{- $_ := set $answers . $logs -}}
{{- end -}}
{{- range list "otel-collector-endpoint" "otel-transport-ca-cert" "otel-service-name" "otel-trace-namespace" "otel-sample-rate" "otel-fallback-no-op-on-error" -}}
{{- $_ := set $answers . $traces -}}
{{- end -}}
{{- toYaml $answers -}}
{{- end -}}
