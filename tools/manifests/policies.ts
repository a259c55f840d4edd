import type { KubernetesObject } from './kubernetes-object.ts';
import { networkPolicyProblems } from './network-policies.ts';
import { podSecurityProblems } from './pod-security.ts';
import { referenceProblems, routeProblems } from './references.ts';
import { secretProblems } from './secrets.ts';
import { availabilityProblems, settingProblems, workloadProblems } from './workload-rules.ts';

const CHECKS = [
  podSecurityProblems,
  workloadProblems,
  availabilityProblems,
  referenceProblems,
  routeProblems,
  networkPolicyProblems,
  secretProblems,
  settingProblems,
];

/** Everything but the schemas and the applications' own configuration: see each check. */
export function policyProblems(objects: readonly KubernetesObject[]): string[] {
  return CHECKS.flatMap((check) => check(objects));
}
