import base64

import pytest

from openagent import ConfigError, ImageBlock, Message, TextBlock, images

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 8
GIF = b"GIF89a" + b"\0" * 9
WEBP = b"RIFF\x10\0\0\0WEBPVP8 "
KINDS = {"image/png": PNG, "image/jpeg": JPEG, "image/gif": GIF, "image/webp": WEBP}
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


def text_of(content):
    return base64.b64encode(content).decode()


def uri(content, label="image/png"):
    return f"data:{label};base64,{text_of(content)}"


@pytest.mark.parametrize("url", ["http://x/cat.png", "https://x/cat.png?a=1#b", "https://x/" + "a" * 3000])
def test_the_url_of_an_image_is_taken_as_it_is(url):
    """R-150; a long one too."""
    assert (ImageBlock(url).url, ImageBlock.from_url(url)) == (url, ImageBlock(url, "auto"))


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            None,
            7,
            b"http://x",
            "cat.png",
            "/tmp/cat.png",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ftp://x/y",
        ),
        *("HTTP://x/y", " http://x/y", "vbscript:x", "blob:http://x/y"),
    ],
)
def test_a_url_of_another_kind_is_refused(url):
    """R-150, B-12."""
    with pytest.raises(ConfigError, match="image"):
        ImageBlock(url)


@pytest.mark.parametrize("character", ["\n", "\t", "\0", "\r", "\x7f", "\x85", "\x9f"])
@pytest.mark.parametrize("before", ["http://x/", "https://x/" + "a" * 5000])
def test_a_control_character_in_a_url_is_refused_wherever_it_stands(before, character):
    """R-150, B-16: any Unicode control character."""
    with pytest.raises(ConfigError, match="control character"):
        ImageBlock(f"{before}{character}y")


@pytest.mark.parametrize("character", ["\n", "\0", "\x85"])
def test_a_control_character_in_a_data_uri_is_refused(character):
    """R-150, B-16."""
    with pytest.raises(ConfigError):
        ImageBlock(uri(PNG) + character)


@pytest.mark.parametrize(("kind", "content"), KINDS.items())
def test_an_image_in_a_data_uri_is_recognised(kind, content):
    assert ImageBlock(uri(content, kind)).url == uri(content, kind)


@pytest.mark.parametrize(("kind", "content"), KINDS.items())
@pytest.mark.parametrize("label", ["image/png", "image/jpeg", "image/whatever"])
def test_the_bytes_decide_the_type_and_not_the_label(kind, content, label):
    """img-01."""
    assert ImageBlock(uri(content, label)).url == uri(content, kind)
    assert ImageBlock.from_base64(text_of(content), label).url == uri(content, kind)


def test_parameters_of_a_data_uri_are_accepted_and_left_out():
    """R-151, B-63: an API refuses a media type with a charset."""
    assert ImageBlock(f"data:image/png;charset=utf-8;base64,{text_of(PNG)}").url == uri(PNG)


@pytest.mark.parametrize("content", [SVG, b"BM" + b"\0" * 20, b"%PDF-1.7", b"hello", b"RIFF\0\0\0\0WAVE"])
def test_what_no_server_takes_is_refused_before_it_is_sent(content):
    """img-01: unknown bytes and SVG."""
    for made in (lambda: ImageBlock(uri(content)), lambda: ImageBlock.from_base64(text_of(content))):
        with pytest.raises(ConfigError, match="no PNG, JPEG, GIF or WebP"):
            made()


BAD_BASE64 = [
    "abc",
    "=",
    "A===",
    "QUJD=QUJD",
    "QU JD",
    "QUJD\n",
    "QU-_",
    "QUJ\u00e9",
    "ＱＵＪＤ",
    "QQ=",
    "A",
    "!!!!",
    "",
]


@pytest.mark.parametrize("payload", BAD_BASE64)
def test_base64_is_strict_and_its_rules_are_the_same_everywhere(payload):
    """R-151, R-152, B-14, B-90: padded, standard alphabet, ASCII, no blanks, not empty."""
    for made in (lambda: ImageBlock.from_base64(payload), lambda: ImageBlock(f"data:image/png;base64,{payload}")):
        with pytest.raises(ConfigError):
            made()


@pytest.mark.parametrize(
    "mime", ["", "text/html", "png", "image/png;x", "image/png,x", "image/png\r\nX: y", "image/png\n", "IMAGE/PNG"]
)
def test_a_type_that_could_smuggle_something_in_is_refused(mime):
    """R-152, B-15."""
    with pytest.raises(ConfigError, match="MIME"):
        ImageBlock.from_base64(text_of(PNG), mime)


@pytest.mark.parametrize(
    "url", ["data:image/png,abc", "data:,", "data:image/png;base64", f"data:;base64,{text_of(PNG)}"]
)
def test_a_data_uri_needs_a_type_and_base64(url):
    """R-151."""
    with pytest.raises(ConfigError):
        ImageBlock(url)


def test_a_data_uri_of_text_is_refused():
    """R-151."""
    with pytest.raises(ConfigError, match="'text/html' is not an image type"):
        ImageBlock(uri(PNG, "text/html"))


@pytest.mark.parametrize("name", ["cat.png", "cat.JPG", "cat", "cat.txt"])
def test_a_file_is_an_image_by_its_bytes_whatever_its_name(tmp_path, name):
    """img-01; the seed refuses ``.JPG`` (R-153)."""
    (tmp_path / name).write_bytes(JPEG)
    expected = ImageBlock(uri(JPEG, "image/jpeg"), "low")
    assert ImageBlock.from_file_path(tmp_path / name, detail="low") == expected
    assert ImageBlock.from_file_path(str(tmp_path / name), detail="low") == expected


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    """R-153."""
    with pytest.raises(ConfigError, match=r"cannot read image file '.*missing\.png': No such file"):
        ImageBlock.from_file_path(tmp_path / "missing.png")
    with pytest.raises(ConfigError, match="cannot read image file"):
        ImageBlock.from_file_path(tmp_path)


def test_a_file_without_an_image_is_named(tmp_path):
    """R-153: an empty file, too."""
    for content in (b"", SVG):
        (tmp_path / "x.svg").write_bytes(content)
        with pytest.raises(ConfigError, match=r"x\.svg' is no PNG"):
            ImageBlock.from_file_path(tmp_path / "x.svg")


def test_a_file_over_the_limit_is_refused_without_being_read_whole(tmp_path):
    """The seed has no limit (R-153)."""
    with open(tmp_path / "big.png", "wb") as file:
        file.write(PNG)
        file.truncate(images.MAX_IMAGE_BYTES * 50)
    with pytest.raises(ConfigError, match="the limit is 20000000"):
        ImageBlock.from_file_path(tmp_path / "big.png")


def test_the_detail_is_auto_unless_it_is_said():
    """R-154."""
    image = ImageBlock("http://x/y")
    assert [image.detail, image.with_detail("low"), image.with_detail("high").detail, image] == [
        "auto",
        ImageBlock("http://x/y", "low"),
        "high",
        ImageBlock("http://x/y", "auto"),
    ]
    with pytest.raises(ConfigError, match="'sharp'"):
        image.with_detail("sharp")


@pytest.mark.parametrize("character", ["é", "€", "😀", "a"])
def test_a_long_url_is_shown_cut_and_cutting_never_fails(character):
    """R-155, B-89: also where the cut would fall into a character."""
    for length in range(80, 120):
        shown = repr(ImageBlock("http://x/" + character * length))
        assert len(shown) < 140
        shown.encode()
    assert len(repr(ImageBlock(uri(PNG * 10_000)))) < 140


def test_an_error_about_an_image_shows_a_readable_piece_of_it():
    with pytest.raises(ConfigError) as caught:
        ImageBlock("ftp://" + "x" * 100_000)
    assert len(str(caught.value)) < 300


def test_a_split_data_uri_gives_type_and_payload():
    assert images.split_data_uri(ImageBlock(uri(GIF)).url) == ("image/gif", text_of(GIF))


def test_an_image_of_a_loaded_message_is_checked_again():
    """B-13; the seed loads it unchecked (1.5)."""
    plain = {"role": "user", "content": [{"type": "image", "url": "javascript:alert(1)"}]}
    with pytest.raises(ConfigError, match="must start with"):
        Message.from_dict(plain)


def test_the_text_stands_before_its_image():
    """1.5."""
    message = Message.user_with_image("what is this?", "http://x/y", detail="high")
    assert message == Message("user", [TextBlock("what is this?"), ImageBlock("http://x/y", "high")])
