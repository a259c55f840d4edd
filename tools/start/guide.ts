import { DEVELOPMENT_PASSWORD, localUrl } from '#platform/environments.ts';
import type { PortTable } from '#platform/ports.ts';

/** What is printed when everything is ready: where things are, and commands to paste. */
export function guide(ports: PortTable, stateFolder: string): string {
  const [auth, settings, task] = [ports.auth, ports.settings, ports.task].map(localUrl) as [
    string,
    string,
    string,
  ];
  return `
The platform is ready.

  auth service      ${auth}   (API: ${auth}/docs)
  settings service  ${settings}   (API: ${settings}/docs)
  task service      ${task}   (API: ${task}/docs)
  neighbours        customers ${localUrl(ports.customers)}, scheduling ${localUrl(ports.scheduling)},
                    completions ${localUrl(ports.completions)}, OpenID provider ${localUrl(ports.openid)}
  logs and data     ${stateFolder}

Try it in another terminal:

  # ivy, an internal partner, logs in
  TOKEN=$(curl -s ${auth}/auth/token/user -H 'Content-Type: application/json' \\
    -d '{"user":"ivy.internal","password":"${DEVELOPMENT_PASSWORD}"}' | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')

  # she writes a setting and reads its bare value
  curl -sw '\\n' -X PUT ${settings}/platform/v1/subsystems/billing/settings/currency \\
    -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"settingValue":"EUR"}'
  curl -sw '\\n' ${settings}/platform/v1/subsystems/billing/settings/currency/value -H "Authorization: Bearer $TOKEN"

  # every weekday at seven at facility 501: a schedule; its event goes round over both buses, then there are task instances
  curl -sw '\\n' ${task}/Schedules -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
    -d '{"facilityId":501,"name":"Check the lift","schedule":"0 7 * * 1-5","timeZone":"Europe/Berlin"}'
  sleep 1; curl -sw '\\n' "${task}/Instances?facilityId=501" -H "Authorization: Bearer $TOKEN"

  # single sign-on: open this in a browser and sign in as carl.customer (password ${DEVELOPMENT_PASSWORD})
  ${auth}/auth/token/sso/initiate

  # the whole story, narrated and checked
  npm run tour

`;
}
