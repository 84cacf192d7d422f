{{/*
Values to environment variables. A setting is REBALANCER_ and its name in upper snake case; what the descheduler's chart
calls otherwise is mapped where the setting itself is not given.
*/}}

{{/* A duration as Go writes it (5m, 1h30m) to seconds; a plain number is seconds already. */}}
{{- define "rebalancer.seconds" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9.]+$" $text -}}
{{- $text -}}
{{- else if regexMatch "^([0-9.]+(ms|s|m|h))+$" $text -}}
{{- $total := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" $text -1 -}}
{{- $number := float64 (regexFind "[0-9.]+" .) -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $total = addf $total (mulf $number (float64 (get (dict "ms" 0.001 "s" 1 "m" 60 "h" 3600) $unit))) -}}
{{- end -}}
{{- $total -}}
{{- else -}}
{{- fail (printf "%q is not a duration such as 5m or 90s" $text) -}}
{{- end -}}
{{- end -}}

{{/* A value as the text of a variable: texts as they are, all else as JSON. */}}
{{- define "rebalancer.text" -}}
{{- if kindIs "string" . -}}{{- . -}}{{- else -}}{{- toJson . -}}{{- end -}}
{{- end -}}

{{/* A flag of the descheduler is on where it stands without a value, too. */}}
{{- define "rebalancer.flag" -}}
{{- if and (hasKey .options .name) (not (has (toString (get .options .name)) (list "false" "0"))) -}}yes{{- end -}}
{{- end -}}

{{/* Settings, by their own names, that follow from the values of the descheduler's chart. */}}
{{- define "rebalancer.mapped" -}}
{{- $mapped := dict -}}
{{- $options := default dict .Values.cmdOptions -}}
{{- $interval := toString (default (default "" .Values.deschedulingInterval) (get $options "descheduling-interval")) -}}
{{- if and (eq .Values.kind "Deployment") $interval (not (regexMatch "^0[a-z]*$" $interval)) -}}
{{- $_ := set $mapped "tickSeconds" (include "rebalancer.seconds" $interval) -}}
{{- end -}}
{{- $election := default dict .Values.leaderElection -}}
{{- $flags := dict "enabled" "leader-elect" "leaseDuration" "leader-elect-lease-duration" "renewDeadline" "leader-elect-renew-deadline" "retryPeriod" "leader-elect-retry-period" "resourceName" "leader-elect-resource-name" "resourceNamespace" "leader-elect-resource-namespace" -}}
{{- $names := dict "enabled" "leaderElection" "leaseDuration" "leaseDurationSeconds" "renewDeadline" "leaseRenewSeconds" "retryPeriod" "leaseRetrySeconds" "resourceName" "leaseName" "resourceNamespace" "leaseNamespace" -}}
{{- range $key, $name := $names -}}
{{- $value := get $election $key -}}
{{- if or (kindIs "invalid" $value) (eq (toString $value) "") -}}
{{- $value = get $options (get $flags $key) -}}
{{- end -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) -}}
{{- if hasSuffix "Seconds" $name -}}{{- $value = include "rebalancer.seconds" $value -}}{{- end -}}
{{- $_ := set $mapped $name $value -}}
{{- end -}}
{{- end -}}
{{- if include "rebalancer.flag" (dict "options" $options "name" "dry-run") -}}
{{- $_ := set $mapped "dryRun" "plan" -}}
{{- end -}}
{{- if contains "EvictionsInBackground=true" (toString (get $options "feature-gates")) -}}
{{- $_ := set $mapped "backgroundEvictions" true -}}
{{- end -}}
{{- with get $options "v" -}}
{{- $_ := set $mapped "logLevel" (ternary "debug" "info" (ge (int .) 4)) -}}
{{- end -}}
{{- with get $options "logging-format" -}}
{{- $_ := set $mapped "logFormat" (ternary "json" "console" (eq . "json")) -}}
{{- end -}}
{{- with (default (get $options "kubeconfig") (get $options "client-connection-kubeconfig")) -}}
{{- $_ := set $mapped "kubeconfig" . -}}
{{- end -}}
{{- with get $options "policy-config-file" -}}
{{- if ne . "/policy-dir/policy.yaml" -}}{{- $_ := set $mapped "policyFile" . -}}{{- end -}}
{{- end -}}
{{- with get $options "bind-address" -}}
{{- $_ := set $mapped "listenAddress" . -}}
{{- end -}}
{{- toJson $mapped -}}
{{- end -}}

{{/* All settings that are given, by their own names. */}}
{{- define "rebalancer.settings" -}}
{{- $given := fromJson (include "rebalancer.mapped" .) -}}
{{- range $name, $value := .Values.settings -}}
{{- if not (or (kindIs "invalid" $value) (and (kindIs "string" $value) (eq $value ""))) -}}
{{- $_ := set $given $name $value -}}
{{- end -}}
{{- end -}}
{{- toJson $given -}}
{{- end -}}

{{/* Where the policy comes from: "variables", "elsewhere" (a file that somebody else mounts) or "configMap". */}}
{{- define "rebalancer.policySource" -}}
{{- $settings := fromJson (include "rebalancer.settings" .) -}}
{{- if .Values.policyVariables -}}variables
{{- else if hasKey $settings "policyFile" -}}elsewhere
{{- else -}}configMap
{{- end -}}
{{- end -}}

{{- define "rebalancer.policyFile" -}}/etc/rebalancer/policy.yaml{{- end -}}

{{- define "rebalancer.variables" -}}
{{- $variables := dict -}}
{{- range $name, $value := fromJson (include "rebalancer.settings" .) -}}
{{- $_ := set $variables (printf "REBALANCER_%s" (snakecase $name | upper)) (include "rebalancer.text" $value) -}}
{{- end -}}
{{- $source := include "rebalancer.policySource" . -}}
{{- if eq $source "configMap" -}}
{{- $_ := set $variables "REBALANCER_POLICY_FILE" (include "rebalancer.policyFile" .) -}}
{{- else if eq $source "variables" -}}
{{- range $name, $value := .Values.policyVariables -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $variables (printf "REBALANCER_%s" $name) (include "rebalancer.text" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $variables -}}
{{- end -}}

{{- define "rebalancer.env" -}}
{{- range $name, $value := fromJson (include "rebalancer.variables" .) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rebalancer.port" -}}
{{- $settings := fromJson (include "rebalancer.settings" .) -}}
{{- int (default 8080 (get $settings "listenPort")) -}}
{{- end -}}

{{/* What holds for a setting: what is given, 0 and an empty list included, or the default of the program. */}}
{{- define "rebalancer.inForce" -}}
{{- if hasKey .settings .name -}}{{- include "rebalancer.text" (get .settings .name) -}}{{- else -}}{{- .default -}}{{- end -}}
{{- end -}}
