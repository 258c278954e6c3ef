/** The anchor of a heading, as GitHub makes it: the same links then work in the repository, in the package and on the site. */
export const slug = (text) =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
