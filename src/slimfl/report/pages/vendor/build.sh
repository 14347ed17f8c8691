#!/usr/bin/env bash
# Makes plot.min.js anew: Observable Plot with the marks that the pages use, and nothing else.
# Needs Node and npm. plot.min.js is never edited by hand.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund @observablehq/plot@0.6.17 esbuild@0.28.2
cat > marks.js <<'EOF'
export { areaY, axisX, axisY, barX, dot, gridX, gridY, line, link, plot, rect, ruleX, ruleY, text } from "@observablehq/plot";
EOF
npx esbuild marks.js --bundle --minify --format=iife --global-name=Plot --legal-comments=none \
  --banner:js="/* Observable Plot 0.6.17 with D3; licences: LICENSE.txt */" --outfile="$here/plot.min.js"
{
  for package in @observablehq/plot $(grep -o 'node_modules/[^"]*' <(npx esbuild marks.js --bundle --minify --metafile=meta.json --outfile=/dev/null >/dev/null 2>&1; cat meta.json) \
      | sed -E 's,node_modules/((@[^/]+/)?[^/]+)/.*,\1,' | sort -u | grep -v '^@observablehq/plot$'); do
    echo "== $package"
    cat node_modules/"$package"/LICENSE* 2>/dev/null || grep '"license"' node_modules/"$package"/package.json
    echo
  done
} > "$here/LICENSE.txt"
