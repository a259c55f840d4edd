import { holds, same } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk, WalkRequest } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

/** In no group. */
const SERVICES_USER = 9000;

/** Who is in a group, and who may pass an access point: groups within groups, for internal administrators. */
export async function accessControlChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy, carl }: Travellers,
): Promise<void> {
  walk.chapter('Role members and access points');
  const members = `${settings.auth}/auth/roles/SecurityEditor~~GroupName~~Operations/members`;
  const access = `${settings.auth}/auth/accessPoints/SecurityEditor~~AccessPointName~~Scheduling/hasAccess`;
  await operationsMembers(walk, { method: 'GET', url: members, token: ivy });
  await walk.step('May Ivy do scheduling?', { method: 'GET', url: access, token: ivy }, (response) => {
    same('the status', response.status, 200);
    same('the body', response.json, { hasAccess: true });
    return 'Yes: Scheduling admits Operations, which she is in through Dispatch.';
  });
  const other = { method: 'GET', url: `${access}?expectedUserId=${SERVICES_USER}`, token: ivy } as const;
  await walk.step(`May user ${SERVICES_USER}?`, other, (response) => {
    same('the status', response.status, 200);
    same('the body', response.json, { hasAccess: false });
    return 'No: in no group that Scheduling admits.';
  });
  for (const [title, url] of [
    ['Carl, a customer, asks for the members', members],
    ['Carl asks for the access point', access],
  ] as const) {
    await walk.step(title, { method: 'GET', url, token: carl }, (response) => {
      same('the status', response.status, 403);
      same(
        'the content type',
        response.headers.get('content-type')?.split(';')[0],
        'application/problem+json',
      );
      return 'Refused: for internal partners and global administrators only.';
    });
  }
}

async function operationsMembers(walk: Walk, request: WalkRequest): Promise<void> {
  await walk.step('Ivy asks who is in Operations', request, (response) => {
    same('the status', response.status, 200);
    const { members, identityNames } = response.json as {
      members: { value: string }[];
      identityNames: string[];
    };
    const names = members.map(({ value }) => value);
    for (const name of ['Dispatch', 'NightShift', 'ivy.internal'])
      holds('the members', names.includes(name), `a list with ${name}`, names);
    same('how often each is listed', names.length, new Set(names).size);
    holds(
      'the identities',
      identityNames.includes('ivy.internal'),
      'a list with ivy.internal',
      identityNames,
    );
    return 'Operations holds Dispatch, which holds NightShift, which holds Operations: a cycle, walked once round.';
  });
}
