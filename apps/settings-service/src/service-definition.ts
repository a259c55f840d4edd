import { GETTING_A_TOKEN, OpenApi, conventions } from '@platform/open-api';
import type { ServiceDefinition } from '@platform/service-defaults';
import { AppModule } from './app.module';
import type { SettingsServiceConfig } from './config';
import { keepJsonBodiesRaw } from './settings/setting-request';
import { MAX_BODY_BYTES } from './settings/setting-value';

const DESCRIPTION = `Named settings of the platform's subsystems: any JSON value under a subsystem name and a setting name, with a history of
every write and delete.

InternalPartner, Customer and Owner may read; InternalPartner may write, list everything and see the history.

${GETTING_A_TOKEN}

\`\`\`sh
SETTINGS=http://127.0.0.1:3002/platform/v1
curl -sS -X PUT "$SETTINGS/subsystems/billing/settings/invoice-day" -H "Authorization: Bearer $ACCESS_TOKEN" \\
  -H 'Content-Type: application/json' -d '{"settingValue":28}'
curl -sS "$SETTINGS/subsystems/billing/settings/invoice-day/value" -H "Authorization: Bearer $ACCESS_TOKEN"
\`\`\`

## Values and names

- A value is kept and served byte for byte: numbers of any precision, the order of members, \`1.0\` and \`-0\`. Only \`null\` is refused.
- Names are case-insensitive (full Unicode case folding after NFC), and returned as the first write spelt them.
- Every write has a new \`ETag\`. \`If-Match\` keeps a write from overwriting a change made in between; \`Idempotency-Key\` makes
  it safe to send a write again. \`commands/write\` applies many writes, all or none.
- \`?at=\` reads the value at an instant; a subsystem can be restored to an instant.

${conventions()}`;

const API_DOCS = new OpenApi({
  description: DESCRIPTION,
  developmentUrl: 'http://127.0.0.1:3002',
  tags: [
    { name: 'Settings', description: 'Read, write and delete settings.' },
    { name: 'History', description: 'Who wrote what and when, and restoring it.' },
    { name: 'Changes', description: 'Follow the changes of settings.' },
    { name: 'Diagnostics', description: 'Whether the service and its database respond.' },
  ],
});

/** Defines the settings service, for production and for tests. */
export function settingsService(config: Readonly<SettingsServiceConfig>): ServiceDefinition {
  return {
    name: 'settings-service',
    title: 'Platform settings service',
    api: API_DOCS,
    config,
    rootModule: AppModule.forRoot(config),
    bodyLimitBytes: MAX_BODY_BYTES,
    configure: keepJsonBodiesRaw,
  };
}
