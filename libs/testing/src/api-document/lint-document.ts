import { readFileSync } from 'node:fs';
import { workspaceFile } from './workspace-file';

/** What Redocly's linter finds in an OpenAPI document with the rules of redocly.yaml, warnings included. */
export async function lintDocument(text: string): Promise<string[]> {
  const { createConfig, lintFromString } = await import('@redocly/openapi-core');
  const config = await createConfig(readFileSync(workspaceFile('redocly.yaml'), 'utf8'));
  const findings = await lintFromString({ source: text, config });
  return findings.map(({ severity, ruleId, message, location }) => {
    const place = location.map(({ pointer }) => pointer ?? '').join(', ');
    return `${severity} ${ruleId}: ${message} (${place})`;
  });
}
