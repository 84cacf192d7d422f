{{/*
`helm upgrade --reuse-values` over a release of the descheduler's chart brings that chart's values and none of ours. Then what is
missing is filled in from our defaults; what is there stays, false and empty included. The policy is left alone: without one, a
ConfigMap of one's own is used. Elsewhere a missing key was taken away by null, and stays away.
*/}}
{{- define "rebalancer.complete" -}}
{{- if include "rebalancer.valuesAreForeign" . -}}
{{- $defaults := omit (fromYaml (.Files.Get "defaults.yaml")) "deschedulerPolicy" -}}
{{- include "rebalancer.fill" (dict "into" .Values "from" $defaults) -}}
{{- $_ := set .Values "foreign" true -}}
{{- end -}}
{{- end -}}

{{/* Our values have an image.digest, those of the descheduler's chart have not. */}}
{{- define "rebalancer.valuesAreForeign" -}}
{{- if not (hasKey (default dict .Values.image) "digest") -}}yes{{- end -}}
{{- end -}}

{{- define "rebalancer.fill" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- if not (hasKey $into $key) -}}
{{- $_ := set $into $key $value -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "rebalancer.fill" (dict "into" (get $into $key) "from" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
