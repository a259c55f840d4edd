import { applicationSecretPurpose } from '../applications/application-secrets';
import { TOKEN_FLOWS } from '../token/token-response';
import { sealSecret } from '../keys/secret-box';
import type { DevelopmentApplication } from './development-identities';
import type { SqlConnection } from './write-development-identities.query';

const PUT_APPLICATION = `
  INSERT INTO auth.application (application_key, allowed_personas, allow_refresh, allowed_flows)
  VALUES ($1, $2, $3, $4)
  ON CONFLICT (application_key) DO UPDATE SET allowed_personas = excluded.allowed_personas,
    allow_refresh = excluded.allow_refresh, allowed_flows = excluded.allowed_flows, enabled = true`;

/** Registers the applications, each with exactly its one development secret. @param key AES-256-GCM key, 32 bytes */
export async function writeDevelopmentApplications(
  connection: SqlConnection,
  applications: readonly DevelopmentApplication[],
  key: Buffer,
): Promise<void> {
  for (const { applicationKey, sharedSecret, allowedPersonas, allowRefresh } of applications) {
    await connection.query(PUT_APPLICATION, [applicationKey, allowedPersonas, allowRefresh, TOKEN_FLOWS]);
    const sealed = sealSecret(key, applicationSecretPurpose(applicationKey), Buffer.from(sharedSecret));
    await connection.query('DELETE FROM auth.application_secret WHERE application_key = $1', [
      applicationKey,
    ]);
    await connection.query(
      'INSERT INTO auth.application_secret (application_key, version, ciphertext) VALUES ($1, 1, $2)',
      [applicationKey, sealed],
    );
  }
}
