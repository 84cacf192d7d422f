{{/*
The policy document. Values of a chart before 0.27 hold `strategies` and no version: Helm merges them with our default
profiles, which then have to go. Flags of 0.18 that limit what is evicted become the keys that took their place.
*/}}

{{- define "rebalancer.policyIsOld" -}}
{{- if or (hasKey (default dict .Values.deschedulerPolicy) "strategies") (hasSuffix "/v1alpha1" .Values.deschedulerPolicyAPIVersion) -}}yes{{- end -}}
{{- end -}}

{{- define "rebalancer.policy" -}}
{{- $policy := deepCopy (default dict .Values.deschedulerPolicy) -}}
{{- $options := default dict .Values.cmdOptions -}}
{{- $version := .Values.deschedulerPolicyAPIVersion -}}
{{- if include "rebalancer.policyIsOld" . -}}
{{- $version = "descheduler/v1alpha1" -}}
{{- $policy = omit $policy "profiles" -}}
{{- if and (include "rebalancer.flag" (dict "options" $options "name" "evict-local-storage-pods")) (not (hasKey $policy "evictLocalStoragePods")) -}}
{{- $_ := set $policy "evictLocalStoragePods" true -}}
{{- end -}}
{{- end -}}
{{- if and (get $options "node-selector") (not (hasKey $policy "nodeSelector")) -}}
{{- $_ := set $policy "nodeSelector" (get $options "node-selector") -}}
{{- end -}}
{{- $perNode := get $options "max-pods-to-evict-per-node" -}}
{{- if and $perNode (gt (int $perNode) 0) (not (hasKey $policy "maxNoOfPodsToEvictPerNode")) -}}
{{- $_ := set $policy "maxNoOfPodsToEvictPerNode" (int $perNode) -}}
{{- end -}}
apiVersion: {{ $version | quote }}
kind: "DeschedulerPolicy"
{{ tpl (toYaml $policy) . }}
{{- end -}}
