/**
 * Full case folding of Unicode 17.0 (CaseFolding.txt, statuses C and F). The table is part of the code
 * because the resulting keys are stored, while the Unicode version of `toLowerCase` changes with Node, and
 * Node offers no case folding. The spec checks every code point against Unicode's own data. All numbers are
 * in base 36.
 */

/**
 * Code points that fold to a single code point. An entry is a code point or a range, followed by the distance
 * to the folded code point. `first-last` is a range of all code points; `first:last` is a range of every
 * second one.
 */
const SIMPLE =
  '1t-2i+w 51+lj 5c-5y+w 60-66+w 74:8e+1 8i:8m+1 8p:93+1 96:ae+1 ag-3d ah:al+1 an-7g ap+5u aq:as+1 au+5q ' +
  'av+1 ax-ay+5p az+1 b2+27 b3+5m b4+5n b5+1 b7+5p b8+5r ba+5v bb+5t bc+1 bg+5v bh+5x bj+5y bk:bo+1 bq+62 ' +
  'br+1 bt+62 bw+1 by+62 bz+1 c1-c2+61 c3:c5+1 c7+63 c8+1 cc+1 ck+2 cl+1 cn+2 co+1 cq+2 cr:d7+1 da:dq+1 ' +
  'dt+2 du:dw+1 dy-2p dz-1k e0:f2+1 f4-3m f6:fm+1 fu+8bv fv+1 fx-4j fy+8bs g1+1 g3-5f g4+1x g5+1z g6:ge+1 ' +
  'n9+38 og:oi+1 om+1 ov+38 p2+12 p4-p6+11 p8+1s pa-pb+1r pd-pt+w pv-q3+w qq+1 r3+8 r4-u r5-p r9-f ra-m ' +
  'rc:ry+1 s0-1i s1-1c s4-1o s5-1s s7+1 s9-7 sa+1 sd-sf-3m sg-sv+28 sw-tr+w v4:w0+1 wa:xq+1 xs+f xt:y5+1 ' +
  'y8:10u+1 10x-11y+1c 3a8-3b9+5ls 3bb+5ls 3bh+5ls 3y0-3y5-8 5mo-4su 5mp-4st 5mq-4sk 5mr-5ms-4si 5mt-4sj ' +
  '5mu-4sc 5mv-4ro 5mw+r7n 5mx+1 5n4-5oa-2bk 5od-5of-2bk 5xc:61g+1 61n-1m 61s:64e+1 64o-64v-8 654-659-8 ' +
  '65k-65r-8 660-667-8 66g-66l-8 66x:673-8 67c-67j-8 69k-69l-8 69m-69n-22 69q-5j9 6a0-6a3-2e 6ag-6ah-8 ' +
  '6ai-6aj-2s 6aw-6ax-8 6ay-6az-34 6b0-7 6bc-6bd-3k 6be-6bf-3i 6jq-5st 6ju-6gv 6jv-6di 6k2+s 6lc-6lr+g ' +
  '6mb+1 792-79r+q 8ow-8q7+1c 8rk+1 8rm-8af 8rn-2xy 8ro-89z 8rr:8rv+1 8rx-8bg 8ry-8al 8rz-8bj 8s0-8bi 8s2+1 ' +
  '8s5+1 8se-8sf-8cf 8sg:8v6+1 8vf:8vh+1 8vm+1 wu8:wvg+1 ww0:wwq+1 x0i:x0u+1 x0y:x2m+1 x2x:x2z+1 x31-r9g ' +
  'x32:x3a+1 x3f+1 x3h-wmg x3k:x3m+1 x3q:x48+1 x4a-wn8 x4b-wnj x4c-wnf x4d-wn5 x4e-wn8 x4g-wlu x4h-wmi ' +
  'x4i-wlx x4j+ps x4k:x4y+1 x50-1c x51-wn7 x52-raw x53:x55+1 x57-wo7 x58:x5m+1 x5o-wu9 x6d+1 xv4-xxb-tzk ' +
  '1ee9-1eey+w 1fcw-1fdz+14 1fhs-1fir+14 1fn4-1fne+13 1fng-1fnu+13 1fnw-1fo2+13 1fo4-1fo5+13 1h1c-1h2q+1s ' +
  '1h74-1h7p+w 1jfk-1jgf+w 20cg-20db+w 20f4-20fs+r 2olc-2om9+y';

/** Code points that fold to several: the code point, then its folding. */
const FULL =
  '67,37,37 8g,2x,lj 95,jg,32 ds,2y,lo pc,qh,lk,ld q8,qt,lk,ld 13b,12d,136 61i,2w,mp 61j,38,lk 61k,3b,lm ' +
  '61l,3d,lm 61m,2p,ji 61q,37,37 66o,qt,lv 66q,qt,lv,lc 66s,qt,lv,ld 66u,qt,lv,n6 680,64g,qh 681,64h,qh ' +
  '682,64i,qh 683,64j,qh 684,64k,qh 685,64l,qh 686,64m,qh 687,64n,qh 688,64g,qh 689,64h,qh 68a,64i,qh ' +
  '68b,64j,qh 68c,64k,qh 68d,64l,qh 68e,64m,qh 68f,64n,qh 68g,65c,qh 68h,65d,qh 68i,65e,qh 68j,65f,qh ' +
  '68k,65g,qh 68l,65h,qh 68m,65i,qh 68n,65j,qh 68o,65c,qh 68p,65d,qh 68q,65e,qh 68r,65f,qh 68s,65g,qh ' +
  '68t,65h,qh 68u,65i,qh 68v,65j,qh 68w,674,qh 68x,675,qh 68y,676,qh 68z,677,qh 690,678,qh 691,679,qh ' +
  '692,67a,qh 693,67b,qh 694,674,qh 695,675,qh 696,676,qh 697,677,qh 698,678,qh 699,679,qh 69a,67a,qh ' +
  '69b,67b,qh 69e,67k,qh 69f,q9,qh 69g,q4,qh 69i,q9,n6 69j,q9,n6,qh 69o,q9,qh 69u,67o,qh 69v,qf,qh ' +
  '69w,q6,qh 69y,qf,n6 69z,qf,n6,qh 6a4,qf,qh 6aa,qh,lk,lc 6ab,qh,lk,ld 6ae,qh,n6 6af,qh,lk,n6 6aq,qt,lk,lc ' +
  '6ar,qt,lk,ld 6as,qp,lv 6au,qt,n6 6av,qt,lk,n6 6b6,67w,qh 6b7,qx,qh 6b8,r2,qh 6ba,qx,n6 6bb,qx,n6,qh ' +
  '6bg,qx,qh 1dkw,2u,2u 1dkx,2u,2x 1dky,2u,30 1dkz,2u,2u,2x 1dl0,2u,2u,30 1dl1,37,38 1dl2,37,38 ' +
  '1dlf,12s,12u 1dlg,12s,12d 1dlh,12s,12j 1dli,132,12u 1dlj,12s,12l';

const FOLDED = new Map([...SIMPLE.split(' ').flatMap(foldingsOfRange), ...FULL.split(' ').map(foldingOfOne)]);

/** Folds each code point of the text. Does not normalise, neither before nor after. */
export function foldCase(text: string): string {
  return text.replace(/[^\0-@[-\u007f]/gu, (character) => FOLDED.get(character) ?? character);
}

function foldingsOfRange(range: string): [from: string, to: string][] {
  const [, first = '', kind, last = first, distance = ''] =
    /^(\w+)(?:([-:])(\w+))??([-+]\w+)$/.exec(range) ?? [];
  const foldings: [string, string][] = [];
  for (let code = number(first); code <= number(last); code += kind === ':' ? 2 : 1)
    foldings.push([String.fromCodePoint(code), String.fromCodePoint(code + number(distance))]);
  return foldings;
}

function foldingOfOne(entry: string): [from: string, to: string] {
  const [from = '', ...to] = entry.split(',').map((code) => String.fromCodePoint(number(code)));
  return [from, to.join('')];
}

function number(text: string): number {
  return parseInt(text, 36);
}
